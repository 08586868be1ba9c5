//! What an agent answers to a message: the text of a turn without tool calls.

use std::collections::BTreeMap;

use spinney_journal::{Journal, JournalFault, pages};
use spinney_kernel::primitives::{Actor, AgentId, Body, CallId, Seq, TreeId};
use spinney_kernel::record::{Event, Outcome, StopReason, Work};

/// The answers of an agent in turns that begin after a person's message to it.
#[derive(Debug)]
pub struct AgentAnswers {
    tree: TreeId,
    agent: AgentId,
    /// The last event that was read.
    seen: Seq,
    /// Whether the message has come.
    is_heard: bool,
    /// Its turns that are under way and may read it, and whether each is its last call.
    turns: BTreeMap<CallId, bool>,
    last: Option<Body>,
    /// What it said in its last call: it read the message, and says nothing after that.
    closing: Option<Body>,
}

impl AgentAnswers {
    /// To the first message that follows event `seq`.
    #[must_use]
    pub const fn after(tree: TreeId, agent: AgentId, seq: Seq) -> Self {
        Self { tree, agent, seen: seq, is_heard: false, turns: BTreeMap::new(), last: None, closing: None }
    }

    /// Reads what has come since the last time, and returns the last answer, if there is one.
    ///
    /// # Errors
    /// If the tree cannot be read.
    pub async fn read(&mut self, journal: &dyn Journal) -> Result<Option<&Body>, JournalFault> {
        let mut pages = pages(journal, self.tree, self.seen);
        while let Some(page) = pages.next().await? {
            for entry in page {
                self.seen = entry.end();
                entry.batch.events.iter().for_each(|event| self.see(event));
            }
        }
        Ok(self.last.as_ref().or(self.closing.as_ref()))
    }

    fn see(&mut self, event: &Event) {
        match event {
            Event::MessageSent { from: Actor::Outside(_), to, .. } if *to == self.agent => {
                self.is_heard = true;
            }
            Event::CallAsked { call, agent, work: Work::Model(work) }
                if self.is_heard && *agent == self.agent && work.is_turn() && work.outside.is_none() =>
            {
                self.turns.insert(*call, work.wrap_up.is_some());
            }
            Event::CallEnded { call, outcome, .. } => {
                let Some(is_closing) = self.turns.remove(call) else { return };
                // The rest of an answer that was cut follows with all of it.
                if let Outcome::Done { body, asks, mismatch: None, stop, .. } = outcome
                    && asks.is_empty()
                    && *stop != StopReason::OutputCap
                {
                    let said = if is_closing { &mut self.closing } else { &mut self.last };
                    *said = Some(body.clone());
                }
            }
            _ => {}
        }
    }
}
