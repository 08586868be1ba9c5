//! Withdraw a call that has not started, or a question of a tool call: its caller no longer waits. If it halted the tree,
//! the others continue.

use serde::{Deserialize, Serialize};

use super::{Accepted, Verb, acting};
use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId, CallId};
use crate::record::{Outcome, Work};
use crate::rules::{Draft, call};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withdraw {
    pub agent: AgentId,
    pub call: CallId,
}

impl Verb for Withdraw {
    type Reply = Accepted;
}

impl Withdraw {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        let ix = acting(draft, by, &self.agent)?;
        let call = draft.call(self.call).filter(|call| call.agent == ix);
        let is_held = |work: &Work| matches!(work, Work::Model(_) | Work::Tool(_));
        let is_of_tool = |work: &Work| matches!(work, Work::Question(question) if question.call.is_some());
        match call {
            Some(call) if is_of_tool(&call.work) => {
                call::end(draft, self.call, Outcome::Cancelled);
                Ok(Accepted {})
            }
            Some(call)
                if !call.is_running()
                    && is_held(&call.work)
                    && call.ask().is_none()
                    && !call.work.is_program() =>
            {
                let outcome = call::given_up(draft, self.call);
                call::end(draft, self.call, outcome);
                Ok(Accepted {})
            }
            Some(_) | None => Err(Refusal::NotWaiting { call: self.call }),
        }
    }
}
