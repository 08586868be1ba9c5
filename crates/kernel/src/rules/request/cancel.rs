//! Cancel an agent and everything below it: calls are stopped, nothing new starts, and it ends when everything below
//! has ended.

use serde::{Deserialize, Serialize};

use super::{Accepted, Outside, Verb};
use crate::definition::{Refusal, check_text};
use crate::primitives::{Actor, AgentId, limit};
use crate::record::Exit;
use crate::rules::{Draft, agent, signal};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    pub agent: AgentId,
    #[serde(default)]
    pub reason: String,
}

impl Verb for Cancel {
    type Reply = Accepted;

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Cancel {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        let ix = signal::target(draft, by, &self.agent)?;
        check_text("reason", &self.reason, limit::NOTE_BYTES_MAX)?;
        agent::end(draft, ix, Exit::Cancelled { reason: self.reason.clone() }, None);
        Ok(Accepted {})
    }
}
