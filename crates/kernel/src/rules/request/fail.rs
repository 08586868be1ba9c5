//! Fail: an agent gives up with a reason and its partial result.

use serde::{Deserialize, Serialize};

use super::{Accepted, Verb, acting};
use crate::definition::{Refusal, check_said};
use crate::primitives::{Actor, AgentId, Body, limit};
use crate::record::{Exit, Failure};
use crate::rules::{Draft, agent};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    pub agent: AgentId,
    pub error: Failure,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Body>,
}

impl Verb for Fail {
    type Reply = Accepted;
}

impl Fail {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        let ix = acting(draft, by, &self.agent)?;
        check_said("error code", self.error.code.as_str(), limit::NOTE_BYTES_MAX)?;
        check_said("error message", &self.error.message, limit::TEXT_BYTES_MAX)?;
        if let Some(partial) = &self.partial {
            partial.checked("partial result")?;
        }
        agent::end(draft, ix, Exit::Failed { error: self.error.clone() }, self.partial.clone());
        Ok(Accepted {})
    }
}
