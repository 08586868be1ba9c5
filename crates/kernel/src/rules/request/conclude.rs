//! Conclude: a person ends a kept agent, which waits after its answer. That answer is its result.

use serde::{Deserialize, Serialize};

use super::{Accepted, Outside, Verb, person};
use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId};
use crate::rules::{Draft, turn};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conclude {
    pub agent: AgentId,
}

impl Verb for Conclude {
    type Reply = Accepted;

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Conclude {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "end an agent with its answer")?;
        draft.check_running()?;
        turn::conclude(draft, &self.agent)?;
        Ok(Accepted {})
    }
}
