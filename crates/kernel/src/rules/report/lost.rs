//! An effect is lost: the process died while it ran, and whether it completed is unknown.
//!
//! A repeatable effect is started again under the same key and hold. A model call is settled at its full hold,
//! because providers bill both attempts, and retried with a new hold, or followed by its agent's last call if time is
//! short. A program that named its session continues in it. Any other tool is reported lost.

use serde::{Deserialize, Serialize};

use super::running;
use crate::budget::Used;
use crate::definition;
use crate::primitives::{CallId, limit};
use crate::record::{Event, Outcome, Work};
use crate::rules::agent::end_if_drained;
use crate::rules::{Draft, Receipt, call, clock, turn};
use crate::world::AgentState;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    pub call: CallId,
    pub attempt: u32,
}

impl Lost {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        let Some(call) = running(draft, self.call, self.attempt) else { return Receipt::Stale };
        let ix = call.agent;
        let losses_max = match &call.work {
            Work::Model(work) => {
                draft.definition().models.get(&work.model).and_then(|model| model.losses_max)
            }
            _ => None,
        };
        let losses_max = losses_max.unwrap_or(limit::LOSSES_MAX);
        let spared = !call.stopped && call.past().map_or(0, |past| past.losses) < losses_max;
        let in_time = clock::check_deadline(draft, ix).is_ok();
        // The answer to a program whose connection is gone has no reader.
        let awaited = call.work.outside().is_none();
        let is_wanted = matches!(draft.agent(ix).state, AgentState::Live) && spared && awaited;
        let live = is_wanted && in_time;
        let in_vain = call::used_in_vain(draft.definition(), call, Used::Unknown);
        let (is_model, repeatable) = match &call.work {
            Work::Model(work) => {
                let model = draft.definition().models.get(&work.model);
                (true, model.is_some_and(|model| model.lost == definition::OnLost::Repeatable))
            }
            // It continues where it was, and repeats nothing.
            Work::Tool(work) if work.is_program => (false, call.session().is_some()),
            Work::Tool(work) => (false, work.lost == definition::OnLost::Repeatable),
            Work::Child(_) | Work::Wait(_) | Work::Question(_) => (false, false),
        };
        // If only time keeps a model call from another attempt, the refusal of that attempt says so.
        let is_late = is_wanted && !in_time && draft.rules() >= 6;
        // Another attempt would take as long as the lost one, which is more than is left.
        let is_last_due =
            is_model && in_time && draft.rules() >= 6 && turn::is_last_call_due(draft, self.call);
        if live && repeatable && !is_last_due {
            call::end_asked_by(draft, self.call);
            draft.record(Event::CallResumed { call: self.call });
        } else if is_model && !is_last_due && (live || is_late) {
            call::attempt_failed(draft, self.call, None, in_vain, Used::Unknown);
            call::admit(draft, self.call, None);
        } else {
            call::end_running(draft, self.call, Outcome::Lost, in_vain, Used::Unknown);
            end_if_drained(draft, ix);
        }
        Receipt::Applied
    }
}
