//! Unpause an agent: calls that waited for it are looked at again, in order.

use serde::{Deserialize, Serialize};

use crate::definition::Refusal;
use crate::record::Event;
use crate::rules::{Draft, Reply, signal};
use crate::words::{AgentId, By};

/// Unpause an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unpause {
    /// Who.
    pub agent: AgentId,
}

impl Unpause {
    pub(super) fn decide(&self, draft: &mut Draft<'_>, by: &By) -> Result<Reply, Refusal> {
        let ix = signal::target(draft, by, &self.agent)?;
        if !draft.agent(ix).paused {
            return Err(Refusal::NotPaused { agent: self.agent.clone() });
        }
        draft.record(Event::AgentUnpaused { agent: self.agent.clone() });
        Ok(Reply::Done)
    }
}
