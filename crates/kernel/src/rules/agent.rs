//! Ending an agent: waiting calls are dropped, running calls are stopped, children end before their parent, and a
//! parent is notified of each child exactly once.

use crate::primitives::Body;
use crate::record::{Attachment, Event, Exit, Outcome, Work};
use crate::rules::{Draft, call, graph, shared, turn};
use crate::world::{AgentIx, AgentState, EndNote};

/// Decides an agent's exit and stops everything below it. Does nothing if the exit was already decided.
pub(crate) fn end(draft: &mut Draft<'_>, ix: AgentIx, exit: Exit, result: Option<Body>) {
    if !is_live(draft, ix) {
        return;
    }
    let parent = draft.agents().parent(ix);
    drop_waiting(draft, ix, |_| false);
    graph::cancel_waiting(draft, ix);
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
    // Top down: mark agents that still have something below or running first, so nothing new starts there.
    for member in family.iter().copied().skip(1) {
        if is_live(draft, member) {
            drop_waiting(draft, member, |_| false);
            graph::cancel_waiting(draft, member);
            if is_busy(draft, member) {
                let agent = draft.agent_id(member).clone();
                draft.record(Event::AgentEnding { agent, exit: orphaned.clone(), result: None });
            }
        }
    }
    // Bottom up: an agent ends when nothing below it lives.
    for member in family.into_iter().rev() {
        if is_live(draft, member) {
            close(draft, member, orphaned.clone(), None);
        } else {
            end_if_drained(draft, member);
        }
    }
}

/// Ends an agent that is being stopped once its last call and child are gone, and then the ancestors that waited for
/// it.
pub(crate) fn end_if_drained(draft: &mut Draft<'_>, ix: AgentIx) {
    let mut next = Some(ix);
    while let Some(ix) = next {
        let Some(agent) = draft.agents().living(ix) else { return };
        let AgentState::Ending(end_note) = &agent.state else { return };
        if is_busy(draft, ix) {
            return;
        }
        let EndNote { exit, result } = EndNote::clone(end_note);
        next = draft.agents().parent(ix);
        close(draft, ix, exit, result);
    }
}

fn is_live(draft: &Draft<'_>, ix: AgentIx) -> bool {
    draft.agents().living(ix).is_some_and(|agent| matches!(agent.state, AgentState::Live))
}

fn is_busy(draft: &Draft<'_>, ix: AgentIx) -> bool {
    let agent = draft.agent(ix);
    agent.running > 0 || agent.family.children_live > 0
}

/// Drops the agent's calls that do not run, except those that `keep` selects.
pub(crate) fn drop_waiting(draft: &mut Draft<'_>, ix: AgentIx, keep: fn(&Work) -> bool) {
    for id in draft.agent(ix).open.clone() {
        if draft.call(id).is_some_and(|call| !call.is_running() && !keep(&call.work)) {
            call::end(draft, id, Outcome::Cancelled);
        }
    }
}

/// The last event of an agent. Its parent gets the result as the end of the call that spawned it, or as a message,
/// unless a wait that names it comes first.
fn close(draft: &mut Draft<'_>, ix: AgentIx, exit: Exit, result: Option<Body>) {
    turn::leave(draft, ix);
    graph::stopped(draft, ix);
    let agent = draft.agent_id(ix).clone();
    let (spent, presumed) = (draft.account_of(ix).spent, *draft.account_of(ix).presumed);
    let attachment = draft.agent(ix).attachment;
    let parent = draft.agents().parent(ix);
    let said = if result.is_none() { draft.agent(ix).progress.last() } else { None };
    if parent.is_none() {
        shared::clear(draft);
    }
    draft.record(Event::AgentEnded { agent, exit, result, said, spent, presumed });
    let Some(parent) = parent.filter(|parent| is_live(draft, *parent)) else { return };
    if let Attachment::Call { call, .. } = attachment {
        call::wake_spawner(draft, call, ix);
    }
    call::wake_waits(draft, parent);
}
