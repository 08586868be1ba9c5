//! The mind of a tree: its world and its contexts, moved only by inputs. It decides and remembers; it does nothing.

use std::sync::Arc;

use spinney_kernel::context::Contexts;
use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::journal::{Entry, Head, Journal, JournalFault};
use spinney_kernel::port::page::pages;
use spinney_kernel::time::Time;
use spinney_kernel::{Decision, Input, Refusal, Report, What, World, decide};

use crate::clock::Clock;
use crate::draw::Draws;

/// A tree's world and contexts, and what it needs to decide.
pub(super) struct Mind {
    pub(super) world: World,
    pub(super) contexts: Contexts,
    clock: Arc<dyn Clock>,
    draws: Draws,
    /// The time of the last input; no later one is earlier.
    now: Time,
}

impl Mind {
    pub(super) fn new(tree: TreeId, clock: Arc<dyn Clock>, draws: Draws) -> Self {
        Self { world: World::new(tree), contexts: Contexts::new(tree), clock, draws, now: Time(0) }
    }

    /// Reads a tree back, a page at a time.
    pub(super) fn recover(&mut self, journal: &dyn Journal, head: &Head) -> Result<(), JournalFault> {
        let tree = self.world.tree();
        for page in pages(journal, tree, Seq(0)) {
            for Entry { batch, .. } in &page? {
                self.now = self.now.max(batch.input.now);
                for event in &batch.events {
                    self.world.apply(event);
                    self.contexts.apply(event);
                }
            }
        }
        let (end, after) = (head.seq.0, self.world.seq().0);
        if end == after {
            return Ok(());
        }
        let reason = format!("its last event is {end} and there is none after {after}");
        Err(JournalFault::Damaged { tree, after, reason })
    }

    /// Decides one input. What it decided is applied; the batch is what the journal is to hold.
    pub(super) fn decide(&mut self, what: What) -> Result<(Seq, Decision, Input), Refusal> {
        self.now = self.now.max(Time(self.clock.now_ms()));
        let after = self.world.seq();
        let draw = if draws(&what) { self.draws.next() & u64::from(u32::MAX) } else { 0 };
        let input = Input { now: self.now, draw, what };
        let decision = decide(&mut self.world, &input)?;
        decision.events.iter().for_each(|event| self.contexts.apply(event));
        Ok((after, decision, input))
    }

    /// This moment.
    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Milliseconds from now until a moment.
    pub(super) fn ms_until(&self, at: Time) -> u64 {
        at.0.saturating_sub(self.clock.now_ms())
    }
}

/// Whether an id may be made for this input: only then are random bits drawn and stored.
const fn draws(what: &What) -> bool {
    match what {
        What::Request { .. } => true,
        What::Report(Report::Done(done)) => !done.asks.is_empty(),
        What::Report(_) => false,
    }
}
