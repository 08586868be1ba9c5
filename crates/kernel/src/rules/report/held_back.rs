//! A call was not sent, because a limit outside the tree does not allow it yet. Its hold returns, no retry is counted,
//! and it waits, or moves to a fallback if its provider is down.

use serde::{Deserialize, Serialize};

use super::running;
use crate::budget::{Amounts, Used};
use crate::primitives::{CallId, Fault, FaultKind, Time, limit};
use crate::record::{Event, HeldBy, Outcome, Work};
use crate::rules::agent::end_if_drained;
use crate::rules::{Draft, Receipt, call};
use crate::world::AgentState;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldBack {
    pub call: CallId,
    pub attempt: u32,
    pub by: HeldBy,
    /// When it may ask again.
    pub until: Time,
}

impl HeldBack {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        let Some(call) = running(draft, self.call, self.attempt) else { return Receipt::Stale };
        if !matches!(call.work, Work::Model(_)) {
            return Receipt::Stale;
        }
        let ix = call.agent;
        if call.stopped || !matches!(draft.agent(ix).state, AgentState::Live) {
            let outcome = Outcome::Failed { fault: Fault::new(FaultKind::Stopped) };
            call::end_running(draft, self.call, outcome, Amounts::ZERO, Used::Unknown);
            end_if_drained(draft, ix);
            return Receipt::Applied;
        }
        let until = self.until.min(draft.now().after_ms(limit::RETRY_AFTER_MAX_MS));
        draft.record(Event::CallHeldBack { call: self.call, by: self.by, until });
        call::admit(draft, self.call, None);
        Receipt::Applied
    }
}
