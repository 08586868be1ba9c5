//! The output caps of calls of outside programs under `on_low: shrink`. Programs ask for far more output than they use,
//! so a cap is fitted to the free budget and leaves room for later calls.
//!
//! A call gets the cap that it asks for, but at most half of what is free, divided among itself and the waiting calls.
//! It gets at least [`limit::OUTPUT_TOKENS_FITTED`], and waits if running calls hold that budget. If the remaining budget
//! allows less than that, the call gets what is left.

use super::{choose, cost};
use crate::budget::{Amounts, Scan};
use crate::definition::OnLow;
use crate::primitives::{CallId, limit};
use crate::record::{ModelCall, Work};
use crate::rules::Draft;
use crate::world::Call;

/// A call whose output cap is fitted to what is free.
#[derive(Clone, Copy)]
pub(super) struct FittedCap<'d> {
    call: &'d Call,
    work: &'d ModelCall,
    /// The smallest cap with which the call may start.
    least: u64,
}

impl<'d> FittedCap<'d> {
    /// None if the call keeps its cap.
    pub(super) fn new(draft: &'d Draft<'_>, id: CallId) -> Option<Self> {
        let call = draft.call(id)?;
        let Work::Model(work) = &call.work else { return None };
        let outside = work.outside.as_deref().filter(|call| draft.rules() >= 6 && call.of_tool.is_none())?;
        if draft.agent(call.agent).terms.on_low != OnLow::Shrink {
            return None;
        }
        let least = work.output_cap.min(limit::OUTPUT_TOKENS_FITTED);
        let smallest = limit::OUTPUT_TOKENS_SHRUNK.max(outside.output_cap_min);
        let least = match choose::affordable_output(draft, call.agent, work) {
            Some(left) if (smallest..least).contains(&left) => left,
            Some(_) | None => least,
        };
        Some(Self { call, work, least })
    }

    /// The amounts that the call needs to start.
    pub(super) fn ask(&self, draft: &Draft<'_>) -> Amounts {
        cost::worst_case_with(draft.definition(), self.call, self.work, self.least, draft.now())
    }

    /// The cap that the call gets now, if it is smaller than the one it asked for. [`Self::ask`] must fit.
    pub(super) fn share(&self, draft: &Draft<'_>, id: CallId, scan: Option<&Scan>) -> Option<u64> {
        let (ledger, at) = (draft.ledger(), draft.agent(self.call.agent).account);
        let free = scan.map_or_else(|| ledger.free(at), |scan| scan.free(ledger, at));
        let in_line = ledger.line_len() - usize::from(ledger.line_of(id.0).is_some());
        let waiting = in_line + draft.calls().waiting_for_slots(id);
        let output = choose::output_within(draft, self.work, free).unwrap_or_default();
        let share = output / 2 / (1 + waiting as u64);
        let cap = self.least.max(share);
        (cap < self.work.output_cap).then_some(cap)
    }
}
