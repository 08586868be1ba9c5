//! Unpause an agent: calls that waited for it are reconsidered, in order.

use serde::{Deserialize, Serialize};

use super::{Accepted, Outside, Verb};
use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId};
use crate::record::Event;
use crate::rules::{Draft, signal};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unpause {
    pub agent: AgentId,
    /// In journals before rules 4: no process ran the tree, so one pause ended and the next began in the same
    /// decision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_resumed: bool,
}

impl Verb for Unpause {
    type Reply = Accepted;

    fn outside(&self) -> Outside {
        if self.until_resumed { Outside::Closed } else { Outside::Open }
    }
}

impl Unpause {
    #[must_use]
    pub const fn now(agent: AgentId) -> Self {
        Self { agent, until_resumed: false }
    }

    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        let ix = signal::target(draft, by, &self.agent)?;
        if !draft.agent(ix).paused {
            return Err(Refusal::NotPaused { agent: self.agent.clone() });
        }
        draft.record(Event::AgentUnpaused { agent: self.agent.clone() });
        if self.until_resumed {
            draft.record(Event::AgentPaused { agent: self.agent.clone() });
        }
        Ok(Accepted {})
    }
}
