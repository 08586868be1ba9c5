//! Pause an agent and everything below it: what runs goes on to its end, nothing new starts.

use serde::{Deserialize, Serialize};

use crate::call::park;
use crate::decide::Reply;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::input::By;
use crate::refusal::Refusal;
use crate::signal;

/// Pause an agent and everything below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Who.
    pub agent: AgentId,
}

impl Pause {
    pub(super) fn decide(&self, draft: &mut Draft<'_>, by: &By) -> Result<Reply, Refusal> {
        let ix = signal::target(draft, by, &self.agent)?;
        if draft.agent(ix).paused {
            return Err(Refusal::AlreadyPaused { agent: self.agent.clone() });
        }
        draft.record(Event::AgentPaused { agent: self.agent.clone() });
        park(draft, ix);
        Ok(Reply::Done)
    }
}
