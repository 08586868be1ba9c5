//! A timer fired: a pause is over, a wait or question timed out, or an agent's time is up.

use serde::{Deserialize, Serialize};

use crate::primitives::{CallId, TimerId, UNANSWERED};
use crate::record::{Exit, OnTimeout, Outcome, WaitFor, Work};
use crate::rules::{Draft, Receipt, agent, call, clock, turn};
use crate::world::Subject;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timer {
    pub timer: TimerId,
}

impl Timer {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        // It fires once and is trusted: clocks differ, and a rejected timer would be gone.
        let Some((_, subject)) = draft.subject(self.timer) else { return Receipt::Stale };
        match subject {
            Subject::Clock(ix, kind) => clock::rang(draft, ix, kind),
            Subject::Call(id) => call_due(draft, id),
        }
        Receipt::Applied
    }
}

fn call_due(draft: &mut Draft<'_>, id: CallId) {
    let Some(call) = draft.call(id) else { unreachable!("a call that ended has no timer") };
    let ix = call.agent;
    match call.work.clone() {
        Work::Model(_) | Work::Tool(_) => {
            // It passes calls that were requested after it, but waits behind all others.
            call::admit(draft, id, None);
            draft.reconsider_calls();
        }
        Work::Child(_) => unreachable!("a child's own deadline ends the call that spawned it"),
        Work::Wait(WaitFor::Message) => call::end(draft, id, Outcome::Expired { ended: Vec::new() }),
        Work::Wait(WaitFor::Children { agents, .. }) => {
            let ended = call::ended_of(draft, &agents);
            call::end(draft, id, Outcome::Expired { ended });
        }
        Work::Question(_) if turn::expire(draft, id) || turn::answered(draft, id, None) => {}
        Work::Question(question) => match question.on_timeout {
            OnTimeout::Fail => call::end(draft, id, Outcome::Expired { ended: Vec::new() }),
            OnTimeout::Default(answer) => {
                let is_default = draft.rules() >= 3;
                call::end(draft, id, Outcome::Answered { answer: *answer, is_default });
            }
            OnTimeout::Cancel => {
                let reason = UNANSWERED.under(draft.rules()).to_owned();
                agent::end(draft, ix, Exit::Cancelled { reason }, None);
            }
        },
    }
}
