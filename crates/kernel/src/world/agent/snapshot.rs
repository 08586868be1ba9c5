//! Captures an agent's state for a checkpoint and validates one against the world. Counts and positions only; the
//! texts are read back from the journal.

use crate::context::ContextSnapshot;
use crate::primitives::{AgentId, Seq, limit};
use crate::record::AgentSnapshot;
use crate::world::World;

impl AgentSnapshot {
    /// `None` unless it lives and takes turns.
    #[must_use]
    pub fn new(world: &World, agent: &AgentId, known: &ContextSnapshot) -> Option<Self> {
        let found = world.agents().living(world.agents().find(agent)?)?;
        let progress = &found.progress;
        Some(Self {
            born: u32::try_from(world.agents().len()).unwrap_or(u32::MAX),
            tokens: progress.tokens,
            said: progress.last(),
            said_tokens: progress.last_tokens(),
            inbox: found.inbox.all().to_vec(),
            open: known.open().to_vec(),
            window: progress.window.holding(),
        })
        .filter(|standing| !standing.window.headers.is_empty())
    }

    /// What contradicts this world at event `at`, if anything does.
    pub(crate) fn wrong(&self, world: &World, at: Seq) -> Option<&'static str> {
        let is_past = |seq: &Seq| *seq <= at;
        if self.born == 0 || self.born as usize > world.agents().len() {
            Some("it knows agents that are not there")
        } else if !self.said.iter().chain(&self.inbox).all(is_past) {
            Some("it knows events that came later")
        } else if self.inbox.len() > self.window.headers.len() {
            Some("its inbox has more than its window")
        } else if self.open.len() > limit::OPEN_CALLS_MAX
            || (!self.open.is_empty() && !self.window.has_asks())
        {
            Some("it waits for answers that nobody asked for")
        } else {
            self.window.wrong()
        }
    }
}
