//! The simulator: a seed creates a random tree and its load of spawns, calls, failures, cancels and crashes. The laws
//! are checked after every decision; a broken one names the seed that reproduces it.

mod case;
mod clocks;
mod dice;
mod fitted;
mod graphs;
mod host_requests;
mod law;
mod moves;
mod policy;
mod random_definition;
mod random_parts;
mod random_tool_calls;
mod repeats;
mod shared;
mod start;
mod tool_questions;
#[cfg(feature = "whole")]
pub mod whole;
mod windows;
mod wrap_up;

pub use case::{Tally, batches, run_case};
pub use clocks::deadline;
pub use law::is_within;
pub use policy::PolicyTally;

/// A broken law, and how to reproduce it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawViolation {
    /// The seed of the case.
    pub seed: u64,
    /// After how many operations.
    pub operation: u64,
    /// Which law, and the numbers.
    pub law: String,
    /// The last batch, as JSON.
    pub last: String,
}

impl std::fmt::Display for LawViolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, operation, law, last } = self;
        write!(f, "{law} (operation {operation}); reproduce with: make sim SEED={seed} STEPS=1\nlast: {last}")
    }
}

impl std::error::Error for LawViolation {}

/// Runs cases from `seed` on until `steps` operations are done.
///
/// # Errors
/// The first broken law.
pub fn run(seed: u64, steps: u64) -> Result<Tally, LawViolation> {
    let mut tally = Tally::default();
    let mut next = seed;
    while tally.operations < steps.max(1) {
        tally.add(&run_case(next)?);
        next = next.wrapping_add(1);
    }
    Ok(tally)
}
