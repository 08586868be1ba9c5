//! The mind of a tree: its world and its contexts, moved only by inputs. It decides and remembers; it does nothing.

use std::sync::Arc;

use spinney_kernel::context::Contexts;
use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::journal::{Entry, Journal, JournalFault};
use spinney_kernel::time::Time;
use spinney_kernel::{Decision, Input, Refusal, What, World, decide};

use crate::clock::Clock;
use crate::draw::Draws;

/// Batches read at once when a tree comes back.
const PAGE: usize = 1_024;

/// A tree's world and contexts, and what it needs to decide.
pub(super) struct Mind {
    pub(super) world: World,
    pub(super) contexts: Contexts,
    clock: Arc<dyn Clock>,
    draws: Draws,
    /// The time of the last input; no later one is earlier.
    now: Time,
    /// How far the journal's time is ahead of the clock, because somebody set the clock back since it was written.
    ahead_ms: u64,
}

impl Mind {
    pub(super) fn new(tree: TreeId, clock: Arc<dyn Clock>, draws: Draws) -> Self {
        let (world, contexts) = (World::new(tree), Contexts::new(tree));
        Self { world, contexts, clock, draws, now: Time(0), ahead_ms: 0 }
    }

    /// Reads a tree back, a page at a time.
    pub(super) fn recover(&mut self, journal: &dyn Journal) -> Result<(), JournalFault> {
        loop {
            let page = journal.read(self.world.tree(), self.world.seq(), PAGE)?;
            if page.is_empty() {
                self.ahead_ms = self.now.0.saturating_sub(self.clock.now_ms());
                return Ok(());
            }
            for Entry { batch, .. } in &page {
                self.now = self.now.max(batch.input.now);
                for event in &batch.events {
                    self.world.apply(event);
                    self.contexts.apply(event);
                }
            }
        }
    }

    /// Decides one input. What it decided is applied; the batch is what the journal is to hold.
    pub(super) fn decide(&mut self, what: What) -> Result<(Seq, Decision, Input), Refusal> {
        self.now = self.now.max(Time(self.now_ms()));
        let after = self.world.seq();
        let input = Input { now: self.now, draw: self.draws.next(), what };
        let decision = decide(&mut self.world, &input)?;
        decision.events.iter().for_each(|event| self.contexts.apply(event));
        Ok((after, decision, input))
    }

    /// This moment. It goes on from where the journal ends.
    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ms().saturating_add(self.ahead_ms)
    }

    /// Milliseconds from now until a moment.
    pub(super) fn ms_until(&self, at: Time) -> u64 {
        at.0.saturating_sub(self.now_ms())
    }
}
