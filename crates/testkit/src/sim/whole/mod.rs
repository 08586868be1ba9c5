//! The whole simulator: a seed creates a tree, its models, its tools and the people around it, and the real runtime
//! runs it over a real store with paused time. The journal crashes the process at chosen positions, and the next
//! process resumes the tree. The laws are checked with every batch, after every crash and at the end: nothing is lost,
//! nothing is done or paid twice, and where nothing depends on timing the result is that of a run without a crash.

mod answers;
mod audit;
mod case;
mod coverage;
mod crashing_journal;
mod life;
mod outside;
mod people;
mod player;
mod record;
mod sim_tree;

pub use audit::{Audit, audit};
pub use case::{Case, CaseStore, CrashChoice};
pub use coverage::TELLING;
pub use crashing_journal::{Crash, CrashKind};
pub use sim_tree::Mode;

use std::collections::BTreeSet;

use super::policy::PolicyTally;

/// Runs with several crashes for each seed.
pub const LIVES: u64 = 12;

/// Coverage counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunTally {
    /// Seeds, in each mode and for each kind of crash.
    pub cases: u64,
    /// Trees that ended.
    pub trees: u64,
    /// Crashes survived.
    pub crashes: u64,
    /// Journal positions at which a crash was tried, before and after counted separately.
    pub positions: u64,
    /// Trees with crashes whose results are those without.
    pub equal: u64,
    /// Trees with a crash during the stop of a call, so more may have been billed under a ceiling.
    pub excused: u64,
    /// Batches written.
    pub batches: u64,
    /// Events recorded.
    pub events: u64,
    /// Model calls made.
    pub models: u64,
    /// Tool calls made.
    pub tools: u64,
    /// Agents that were spawned.
    pub agents: u64,
    /// What a second computation of graphs compared.
    pub policy: PolicyTally,
    /// What happened at least once, of [`TELLING`].
    pub seen: BTreeSet<&'static str>,
}

impl RunTally {
    /// Adds another tally to this one.
    pub fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.trees += other.trees;
        self.crashes += other.crashes;
        self.positions += other.positions;
        self.equal += other.equal;
        self.excused += other.excused;
        self.batches += other.batches;
        self.events += other.events;
        self.models += other.models;
        self.tools += other.tools;
        self.agents += other.agents;
        self.policy.add(&other.policy);
        self.seen.extend(&other.seen);
    }

    fn count(&mut self, life: &life::Life) {
        self.trees += 1;
        self.crashes += life.crashes;
        self.batches += life.batches;
        self.events += life.events;
        self.models += life.calls.0;
        self.tools += life.calls.1;
        self.agents += life.agents.len() as u64;
        self.policy.add(&life.policy);
        self.seen.extend(&life.seen);
    }
}

/// A broken law, and how to reproduce it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunViolation {
    /// The seed of the case.
    pub seed: u64,
    /// The mode.
    pub mode: Mode,
    /// Where the process crashed.
    pub crashes: Vec<Crash>,
    /// Which law, and the numbers.
    pub law: String,
}

impl std::fmt::Display for RunViolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, mode, crashes, law } = self;
        write!(f, "{law}\n({mode:?}, {crashes:?}); reproduce with: make sim SEED={seed} STEPS=1")
    }
}

impl std::error::Error for RunViolation {}

/// Runs cases from `seed` on, in every mode, until `batches` are written.
///
/// # Errors
/// The first broken law.
pub fn run(seed: u64, batches: u64, place: &CaseStore) -> Result<RunTally, RunViolation> {
    let mut tally = RunTally::default();
    let mut next = seed;
    while tally.batches < batches.max(1) {
        for mode in Mode::ALL {
            let case = Case { seed: next, mode, place: place.clone() };
            tally.add(&case.run(CrashChoice::Every)?);
            tally.add(&case.run(CrashChoice::Random(LIVES))?);
        }
        next = next.wrapping_add(1);
    }
    Ok(tally)
}
