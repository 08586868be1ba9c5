//! Applies a rollback: sets an agent to its state at a checkpoint. What was spent, the number of turns, the window
//! size and the terms stay.

use super::World;
use crate::context::ROLLED_BACK;
use crate::primitives::TokenCount;
use crate::record::{Attachment, Restored};
use crate::window::Room;
use crate::world::{AgentIx, Progress};

impl World {
    pub(super) fn restored(&mut self, restored: &Restored) {
        let Restored { agent: id, standing, .. } = restored;
        let ix = self.place(id);
        let mut unasked = 0;
        for call in self.agent(ix).open.clone() {
            if !restored.stays.contains(&call) {
                let call = self.calls.call_mut(call);
                unasked += u16::from(call.ask().is_some());
                call.void();
            }
        }
        for child in &restored.cancelled {
            let child = self.place(child);
            let attachment = &mut self.agents.agent_mut(child).attachment;
            if *attachment == Attachment::Detached {
                *attachment = Attachment::Disowned;
            }
        }
        let agent = self.agents.agent_mut(ix);
        agent.kinds.unasked += unasked;
        agent.inbox = standing.inbox.iter().copied().collect();
        agent.progress.restore(restored);
        // All tools requested before each of them have returned by then.
        let mut unanswered = restored.unanswered.clone();
        unanswered.sort_unstable();
        for ask in unanswered {
            let rank = self.rank(ix, ask);
            self.agents
                .agent_mut(ix)
                .progress
                .answered(rank, &Room::from(TokenCount::of_bytes(ROLLED_BACK.under(self.rules).len())));
        }
        let agent = self.agents.agent_mut(ix);
        let is_own = restored.from == *id;
        let contexts = if is_own { agent.progress.window.context_messages() } else { 0 };
        // Agents that it shared with still have messages that it no longer has; its replacements are new to them.
        let others: Vec<AgentIx> = self.agents.all().filter(|ix| self.agents.living(*ix).is_some()).collect();
        for other in others {
            self.agents.agent_mut(other).progress.window.knows_at_most(id, contexts);
        }
    }
}

impl Progress {
    /// Restores messages and last text. Turns stay counted.
    fn restore(&mut self, Restored { standing, .. }: &Restored) {
        let first = self.window.headers().first().map_or(0, |header| u64::from(header.tokens));
        let others = standing.tokens.saturating_sub(standing.window.first_tokens());
        self.tokens = others.saturating_add(first);
        self.set_last(standing.said, standing.said_tokens);
        self.set_failed(None);
        self.anew();
        self.goes_on();
        self.window.restore(&standing.window);
    }
}
