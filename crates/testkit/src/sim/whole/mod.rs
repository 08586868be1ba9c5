//! The whole simulator: a seed grows a tree, its models, its tools and the people around it, and the real runtime runs
//! it over a real store, on time that only passes when nothing else is to do. A journal crashes the process where it
//! is told to; the next process takes the tree up. What must hold is judged with every batch, after every crash and
//! at the end: nothing is lost, nothing is done or paid twice, and where nothing depends on who is faster the result
//! is that of a run without a crash.

mod answers;
mod audit;
mod case;
mod coverage;
mod crashing_journal;
mod life;
mod outside;
mod people;
mod player;
mod plot;
mod record;

pub use audit::{Audit, audit};
pub use case::{Case, Place, Try};
pub use coverage::TELLING;
pub use crashing_journal::{Blow, Crash};
pub use plot::Mode;

use std::collections::BTreeSet;

/// Lives with several crashes that are tried of one seed.
pub const LIVES: u64 = 12;

/// How much was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunTally {
    /// Seeds, in each mode and for each kind of crash.
    pub cases: u64,
    /// Trees that came to their end.
    pub trees: u64,
    /// Crashes survived.
    pub crashes: u64,
    /// Journal positions at which a crash was tried, before and after counted apart.
    pub positions: u64,
    /// Trees with crashes that came out as without.
    pub equal: u64,
    /// Trees where a crash met a call that was being stopped, so that more may have been billed under a ceiling.
    pub excused: u64,
    /// Batches written.
    pub batches: u64,
    /// Events recorded.
    pub events: u64,
    /// Model calls made.
    pub models: u64,
    /// Tool calls made.
    pub tools: u64,
    /// Agents that lived.
    pub agents: u64,
    /// What was seen to happen, of [`TELLING`].
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
        self.seen.extend(&life.seen);
    }
}

/// A law that did not hold, and how to see it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRun {
    /// The seed of the case.
    pub seed: u64,
    /// What may happen in it.
    pub mode: Mode,
    /// Where the process crashed.
    pub crashes: Vec<Crash>,
    /// Which law, and the numbers.
    pub law: String,
}

impl std::fmt::Display for BrokenRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, mode, crashes, law } = self;
        write!(f, "{law}\n({mode:?}, {crashes:?}); reproduce with: make sim SEED={seed} STEPS=1")
    }
}

impl std::error::Error for BrokenRun {}

/// Runs cases from `seed` on, in every mode, until `batches` were written.
///
/// # Errors
/// The first law that did not hold.
pub fn run(seed: u64, batches: u64, place: &Place) -> Result<RunTally, BrokenRun> {
    let mut tally = RunTally::default();
    let mut next = seed;
    while tally.batches < batches.max(1) {
        for mode in Mode::ALL {
            let case = Case { seed: next, mode, place: place.clone() };
            tally.add(&case.run(Try::Every)?);
            tally.add(&case.run(Try::Random(LIVES))?);
        }
        next = next.wrapping_add(1);
    }
    Ok(tally)
}
