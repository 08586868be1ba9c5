//! Ends calls: whatever a call held is settled, once.

use crate::budget::Amounts;
use crate::record::{Event, Outcome};
use crate::rules::Draft;
use crate::words::{CallId, Fault};

/// Ends a call that does not run. It used nothing since its last attempt was settled.
pub(crate) fn end(draft: &mut Draft<'_>, id: CallId, outcome: Outcome) {
    draft.record(Event::CallEnded { call: id, outcome, spent: Amounts::ZERO, overrun: Amounts::ZERO });
}

pub(crate) fn end_running(draft: &mut Draft<'_>, id: CallId, outcome: Outcome, spent: Amounts) {
    let overrun = spent.minus(&held(draft, id));
    draft.record(Event::CallEnded { call: id, outcome, spent, overrun });
}

/// Settles a running attempt at its usage; the call continues.
pub(crate) fn attempt_failed(draft: &mut Draft<'_>, id: CallId, fault: Option<Fault>, spent: Amounts) {
    let overrun = spent.minus(&held(draft, id));
    draft.record(Event::AttemptFailed { call: id, fault, spent, overrun });
}

fn held(draft: &Draft<'_>, id: CallId) -> Amounts {
    draft.call(id).map_or(Amounts::ZERO, crate::world::Call::held)
}
