//! Ending: how a life is wound up. Calls that wait are dropped, calls that run are stopped, children are cancelled
//! before their parent is over, and a parent hears of each child exactly once.

use crate::record::{Attachment, Event, Exit, Outcome, Work};
use crate::rules::{Draft, call, turn};
use crate::words::Body;
use crate::world::{AgentIx, AgentState, Farewell};

/// Decides how an agent ends and stops everything below it. Does nothing if that was decided before.
pub(crate) fn end(draft: &mut Draft<'_>, ix: AgentIx, exit: Exit, result: Option<Body>) {
    if !is_live(draft, ix) {
        return;
    }
    let parent = draft.agents().parent(ix);
    drop_waiting(draft, ix, |_| false);
    if is_busy(draft, ix) {
        end_family(draft, ix, exit, result);
    } else {
        close(draft, ix, exit, result);
    }
    if let Some(parent) = parent {
        end_if_drained(draft, parent);
    }
}

fn end_family(draft: &mut Draft<'_>, ix: AgentIx, exit: Exit, result: Option<Body>) {
    let family = draft.agents().subtree(ix);
    let agent = draft.agent_id(ix).clone();
    let orphaned = Exit::Cancelled { reason: format!("`{agent}` ended") };
    draft.record(Event::AgentEnding { agent, exit, result });
    // From the top: who still has something below or running is marked first, so that nothing new starts there.
    for member in family.iter().copied().skip(1) {
        if is_live(draft, member) {
            drop_waiting(draft, member, |_| false);
            if is_busy(draft, member) {
                let agent = draft.agent_id(member).clone();
                draft.record(Event::AgentEnding { agent, exit: orphaned.clone(), result: None });
            }
        }
    }
    // From the bottom: an agent is over when nothing below it lives.
    for member in family.into_iter().rev() {
        if is_live(draft, member) {
            close(draft, member, orphaned.clone(), None);
        } else {
            end_if_drained(draft, member);
        }
    }
}

/// Ends an agent that is being stopped once its last call and child are gone, and then its ancestors that waited
/// for that.
pub(crate) fn end_if_drained(draft: &mut Draft<'_>, ix: AgentIx) {
    let mut next = Some(ix);
    while let Some(ix) = next {
        let Some(agent) = draft.agents().living(ix) else { return };
        let AgentState::Ending(farewell) = &agent.state else { return };
        if is_busy(draft, ix) {
            return;
        }
        let Farewell { exit, result } = Farewell::clone(farewell);
        next = draft.agents().parent(ix);
        close(draft, ix, exit, result);
    }
}

fn is_live(draft: &Draft<'_>, ix: AgentIx) -> bool {
    draft.agents().living(ix).is_some_and(|agent| matches!(agent.state, AgentState::Live))
}

fn is_busy(draft: &Draft<'_>, ix: AgentIx) -> bool {
    let agent = draft.agent(ix);
    agent.running > 0 || agent.kin.children_live > 0
}

/// Drops the calls of an agent that do not run, but for those that `keep` says.
pub(crate) fn drop_waiting(draft: &mut Draft<'_>, ix: AgentIx, keep: fn(&Work) -> bool) {
    for id in draft.agent(ix).open.clone() {
        if draft.call(id).is_some_and(|call| !call.is_running() && !keep(&call.work)) {
            call::end(draft, id, Outcome::Cancelled);
        }
    }
}

/// The last event of an agent. Its parent hears of it as the end of the call that spawned it, or finds it among its
/// messages, unless a wait that names it comes first.
fn close(draft: &mut Draft<'_>, ix: AgentIx, exit: Exit, result: Option<Body>) {
    turn::leave(draft, ix);
    let agent = draft.agent_id(ix).clone();
    let spent = draft.account_of(ix).spent;
    let attachment = draft.agent(ix).attachment;
    let parent = draft.agents().parent(ix);
    let said = if result.is_none() { draft.agent(ix).progress.last() } else { None };
    draft.record(Event::AgentEnded { agent, exit, result, said, spent });
    let Some(parent) = parent.filter(|parent| is_live(draft, *parent)) else { return };
    if let Attachment::Call { call, .. } = attachment {
        call::wake_spawner(draft, call, ix);
    }
    call::wake_waits(draft, parent);
}
