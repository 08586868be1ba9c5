//! Ends calls: whatever a call held is settled, once.

use crate::budget::{Amounts, ResourceSet, Used};
use crate::primitives::{CallId, Fault};
use crate::record::{Event, Outcome, Work};
use crate::rules::{Draft, program};
use crate::world::Call;

/// Ends a call that does not run. It used nothing since its last attempt was settled.
pub(crate) fn end(draft: &mut Draft<'_>, id: CallId, outcome: Outcome) {
    let (spent, overrun, presumed) = (Amounts::ZERO, Amounts::ZERO, Amounts::ZERO);
    draft.record(Event::CallEnded { call: id, outcome, spent, overrun, presumed, input_tokens: None });
}

/// `used` is what its driver reported, and `spent` what that costs.
pub(crate) fn end_running(draft: &mut Draft<'_>, id: CallId, outcome: Outcome, spent: Amounts, used: Used) {
    end_asked_by(draft, id);
    let (overrun, presumed) = (spent.minus(&held(draft, id)), presumed(draft, spent, used));
    let is_model = draft.call(id).is_some_and(|call| matches!(call.work, Work::Model(_)));
    let input_tokens = match used.checked() {
        Ok(Used::Tokens(usage)) if is_model && draft.rules() >= 5 => Some(usage.input_tokens()),
        Ok(Used::Tokens(_) | Used::CostNanos(_) | Used::Unknown) | Err(_) => None,
    };
    let of_program = program::end_of(draft, id, &outcome);
    draft.record(Event::CallEnded { call: id, outcome, spent, overrun, presumed, input_tokens });
    if let Some(end) = of_program {
        program::ended(draft, end);
    }
}

/// Settles a running attempt at its usage; the call continues.
pub(crate) fn attempt_failed(
    draft: &mut Draft<'_>,
    id: CallId,
    fault: Option<Fault>,
    spent: Amounts,
    used: Used,
) {
    end_asked_by(draft, id);
    let (overrun, presumed) = (spent.minus(&held(draft, id)), presumed(draft, spent, used));
    draft.record(Event::AttemptFailed { call: id, fault, spent, overrun, presumed });
}

/// Ends the questions of a tool call, and its model calls that have not started: nothing reads their answers any more.
pub(crate) fn end_asked_by(draft: &mut Draft<'_>, id: CallId) {
    if draft.call(id).is_some_and(|call| matches!(call.work, Work::Tool(_))) {
        end_all(draft, id, |call| {
            is_question_of(call, id) || (call.work.of_tool() == Some(id) && !call.is_running())
        });
    }
}

/// Ends the questions of a tool call.
pub(crate) fn end_questions(draft: &mut Draft<'_>, id: CallId) {
    end_all(draft, id, |call| is_question_of(call, id));
}

fn is_question_of(call: &Call, tool: CallId) -> bool {
    matches!(&call.work, Work::Question(question) if question.call == Some(tool))
}

/// Ends these calls of the agent that has this one.
fn end_all(draft: &mut Draft<'_>, of: CallId, which: impl Fn(&Call) -> bool) {
    let Some(agent) = draft.call(of).map(|call| call.agent) else { return };
    let open = draft.agent(agent).open.iter().copied();
    let all: Vec<CallId> = open.filter(|open| draft.call(*open).is_some_and(&which)).collect();
    for call in all {
        end(draft, call, Outcome::Cancelled);
    }
}

fn held(draft: &Draft<'_>, id: CallId) -> Amounts {
    draft.call(id).map_or(Amounts::ZERO, Call::held)
}

/// The part of `spent` that the provider did not report.
fn presumed(draft: &Draft<'_>, spent: Amounts, used: Used) -> Amounts {
    match used.checked() {
        Ok(Used::Unknown) | Err(_) if draft.rules() >= 6 => spent.only(ResourceSet::MEASURED),
        Ok(Used::Tokens(_) | Used::CostNanos(_) | Used::Unknown) | Err(_) => Amounts::ZERO,
    }
}
