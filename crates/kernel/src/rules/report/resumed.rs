//! A process runs the tree again, or handles a request for a tree that is not running. Nothing ran since the last
//! batch, so neither active time nor a timeout passed. Comes first: clocks that are still over are decided next, then
//! the lost effects, then other timers that are due.

use serde::{Deserialize, Serialize};

use crate::primitives::{CallId, Time};
use crate::record::Outcome;
use crate::rules::{Draft, Receipt, call, clock};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    /// When the last batch before was decided.
    pub since: Time,
}

impl Resumed {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        clock::recount(draft, self.since);
        drop_outside(draft);
        Receipt::Applied
    }
}

/// The connections of outside programs ended with their process, so nothing waits for their calls.
fn drop_outside(draft: &mut Draft<'_>) {
    let open = draft.calls().all().filter(|(_, call)| !call.is_running() && call.work.outside().is_some());
    for id in open.map(|(id, _)| id).collect::<Vec<CallId>>() {
        call::end(draft, id, Outcome::Cancelled);
    }
}
