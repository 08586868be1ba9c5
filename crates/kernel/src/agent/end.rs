//! Ending: how a life is wound up. Calls that wait are dropped, calls that run are stopped, children are cancelled
//! before their parent is over, and a parent hears of each child exactly once.

use super::{AgentIx, Attachment, Exit, Farewell, State};
use crate::body::Body;
use crate::call::{self, Outcome, Stage};
use crate::decide::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::input::By;

/// Decides how an agent ends and stops everything below it. Does nothing if that was decided before.
pub(crate) fn end(draft: &mut Draft<'_>, ix: AgentIx, exit: Exit, result: Option<Body>) {
    if !is_live(draft, ix) {
        return;
    }
    let parent = draft.agents().parent(ix);
    drop_waiting(draft, ix);
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
            drop_waiting(draft, member);
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
        let State::Ending(farewell) = &agent.state else { return };
        let Farewell { exit, result } = Farewell::clone(farewell);
        if is_busy(draft, ix) {
            return;
        }
        next = draft.agents().parent(ix);
        close(draft, ix, exit, result);
    }
}

fn is_live(draft: &Draft<'_>, ix: AgentIx) -> bool {
    draft.agents().living(ix).is_some_and(|agent| matches!(agent.state, State::Live))
}

fn is_busy(draft: &Draft<'_>, ix: AgentIx) -> bool {
    let agent = draft.agent(ix);
    agent.running > 0 || agent.kin.children_live > 0
}

fn drop_waiting(draft: &mut Draft<'_>, ix: AgentIx) {
    for id in draft.agent(ix).open.clone() {
        if draft.call(id).is_some_and(|call| call.stage != Stage::Running) {
            call::end(draft, id, Outcome::Cancelled);
        }
    }
}

/// The last event of an agent, and word of it to its parent.
fn close(draft: &mut Draft<'_>, ix: AgentIx, exit: Exit, result: Option<Body>) {
    let agent = draft.agent_id(ix).clone();
    let spent = draft.account_of(ix).spent;
    let detached = draft.agent(ix).charter.attachment == Attachment::Detached;
    let notice = detached.then(|| result.clone().unwrap_or_default());
    let parent = draft.agents().parent(ix);
    draft.record(Event::AgentEnded { agent: agent.clone(), exit, result, spent });
    if let Some(parent) = parent.filter(|parent| is_live(draft, *parent)) {
        tell_parent(draft, parent, agent, notice);
    }
}

/// A parent hears of its child through a wait that names it, or else by message.
fn tell_parent(draft: &mut Draft<'_>, parent: AgentIx, child: AgentId, notice: Option<Body>) {
    if let (Some(body), false) = (notice, call::is_awaited(draft, parent, &child)) {
        let to = draft.agent_id(parent).clone();
        draft.record(Event::MessageSent { from: By::Agent(child), to, body });
    }
    call::wake_waits(draft, parent);
}
