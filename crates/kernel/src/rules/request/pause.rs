//! Pause an agent and everything below it: running calls finish, and nothing new starts.

use serde::{Deserialize, Serialize};

use super::{Accepted, Outside, Verb};
use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId};
use crate::record::Event;
use crate::rules::call::park;
use crate::rules::{Draft, signal};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    pub agent: AgentId,
}

impl Verb for Pause {
    type Reply = Accepted;

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Pause {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        let ix = signal::target(draft, by, &self.agent)?;
        if draft.agent(ix).paused {
            return Err(Refusal::AlreadyPaused { agent: self.agent.clone() });
        }
        draft.record(Event::AgentPaused { agent: self.agent.clone() });
        park(draft, ix);
        Ok(Accepted {})
    }
}
