//! Ends waits for a message when none can come, because every agent of the tree waits for another. So
//! agents without a master end together, and none waits until its time is up.

use super::end;
use crate::primitives::CallId;
use crate::record::{Outcome, WaitFor, Work};
use crate::rules::{Draft, request};
use crate::world::AgentIx;

/// The first rules that know it.
const SINCE: u32 = 8;

/// Returns whether any wait ended.
pub(crate) fn end_idle_waits(draft: &mut Draft<'_>) -> bool {
    if draft.rules() < SINCE || !draft.calls().any_listens() || !all_wait(draft) {
        return false;
    }
    let is_listening = |work: &Work| matches!(work, Work::Wait(WaitFor::Message));
    let all: Vec<CallId> =
        draft.calls().all().filter(|(_, call)| is_listening(&call.work)).map(|(id, _)| id).collect();
    for id in all {
        // An earlier one may have ended it.
        if draft.call(id).is_some() {
            end(draft, id, Outcome::NobodyLeft);
        }
    }
    true
}

/// Whether every agent waits for another, so that nothing happens without a person.
pub(crate) fn all_wait(draft: &Draft<'_>) -> bool {
    if !draft.calls().all_rest() {
        return false;
    }
    // What drives an agent without turns may do anything. One that stands for steps does nothing by itself.
    let acts_freely = |ix: AgentIx| {
        let Some(agent) = draft.agents().living(ix) else { return false };
        let is_free = agent.open.is_empty() || draft.turns_of(ix).is_none();
        is_free && request::check_not_for_steps(draft, ix).is_ok()
    };
    !draft.agents().all().any(acts_freely)
}
