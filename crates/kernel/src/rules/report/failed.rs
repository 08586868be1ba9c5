//! An attempt failed: its usage is settled, and then the call is retried, moved to a fallback or ended.

use serde::{Deserialize, Serialize};

use super::running;
use crate::budget::{Amounts, Fit, Resource, Used};
use crate::definition;
use crate::primitives::retry::Retry;
use crate::primitives::{CallId, Fault, FaultKind, ModelName, limit, retry};
use crate::record::{Alarm, Event, Outcome, WaitReason, Work};
use crate::rules::agent::end_if_drained;
use crate::rules::turn::Shorter;
use crate::rules::{Draft, Receipt, call, turn};
use crate::world::AgentState;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    pub call: CallId,
    pub attempt: u32,
    pub fault: Fault,
    pub used: Used,
}

enum Next {
    After(u64),
    With(ModelName, u64),
    /// At once, with a shorter packet.
    Shorter(Shorter),
    GiveUp,
}

impl Failed {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        let Some(call) = running(draft, self.call, self.attempt) else { return Receipt::Stale };
        let ix = call.agent;
        let spent = call::used_in_vain(draft.definition(), call, self.used);
        match self.next(draft) {
            Next::GiveUp => {
                let outcome = Outcome::Failed { fault: self.fault.bounded() };
                call::end_running(draft, self.call, outcome, spent, self.used);
                end_if_drained(draft, ix);
            }
            Next::After(ms) => {
                call::attempt_failed(draft, self.call, Some(self.fault.bounded()), spent, self.used);
                let alarm = Some(Alarm { timer: draft.next_timer(), at: draft.now().after_ms(ms) });
                draft.record(Event::CallWaiting {
                    call: self.call,
                    why: WaitReason::Backoff,
                    account: None,
                    alarm,
                });
            }
            Next::Shorter(shorter) => {
                call::attempt_failed(draft, self.call, Some(self.fault.bounded()), spent, self.used);
                turn::shorten(draft, self.call, shorter);
                call::admit(draft, self.call, None);
            }
            Next::With(model, output_cap) => {
                call::attempt_failed(draft, self.call, Some(self.fault.bounded()), spent, self.used);
                draft.record(Event::CallSwitched { call: self.call, model, output_cap });
                call::admit(draft, self.call, None);
            }
        }
        Receipt::Applied
    }

    /// A busy provider is retried later; a failing one is replaced by a fallback, if there is one. The last attempt
    /// always goes to a fallback. A packet that is too long is cut first, once.
    fn next(&self, draft: &Draft<'_>) -> Next {
        let Some(call) = draft.call(self.call) else { return Next::GiveUp };
        let agent = draft.agent(call.agent);
        let faults = call.past().map_or(0, |past| past.faults) + 1;
        let over = !matches!(agent.state, AgentState::Live) || call.stopped || faults >= limit::ATTEMPTS_MAX;
        // An outside program makes its own retries.
        if over || !self.fault.is_elsewhere() || call.work.outside().is_some() {
            return Next::GiveUp;
        }
        // The failed attempt may itself have been a retry, which is spent by the time of the next one.
        let retries = Amounts::ZERO.with(Resource::Retries, call.held().get(Resource::Retries) + 1);
        if matches!(draft.ledger().fit(agent.account, &retries), Fit::Never(_, short) if short.resource == Resource::Retries)
        {
            return Next::GiveUp;
        }
        if self.fault.kind == FaultKind::ContextTooLong
            && let Some(shorter) = turn::shorter(draft, self.call)
        {
            return Next::Shorter(shorter);
        }
        let repeatable = match &call.work {
            Work::Model(_) => true,
            Work::Tool(work) => work.lost == definition::OnLost::Repeatable,
            Work::Child(_) | Work::Wait(_) | Work::Question(_) => false,
        };
        let retry = retry::after(&self.fault, faults, draft.tree(), self.call);
        let busy = self.fault.kind == FaultKind::RateLimit && faults + 1 < limit::ATTEMPTS_MAX;
        match (retry, call::fallback(draft, self.call)) {
            (Retry::After { ms }, _) if busy && repeatable => Next::After(ms),
            (_, Some((model, output_cap))) => Next::With(model, output_cap),
            (Retry::After { ms }, None) if repeatable => Next::After(ms),
            (Retry::After { .. } | Retry::No, None) => Next::GiveUp,
        }
    }
}
