//! Sharing a thread: who joins is told what the thread knows, everybody is told what it learns, and each time somebody
//! joins or leaves its bound is the least that any of them has room for.

use super::tell::{Before, tell};
use crate::definition::Shares;
use crate::record::Event;
use crate::rules::Draft;
use crate::window::{News, Slice};
use crate::words::{AgentId, Category};
use crate::world::{AgentIx, AgentState, World};

/// A new agent reads the thread of its parent: the one that the parent reads, or else its own.
pub(super) fn join(draft: &mut Draft<'_>, parent: AgentIx, agent: &AgentId) {
    let Some(ix) = draft.agents().find(agent) else { return };
    let head = draft.threads().read_by(parent).unwrap_or(parent);
    let readers = readers(draft, head).into_iter().chain([ix]);
    let bound = least(draft, head, readers);
    let of = draft.agent_id(head).clone();
    draft.record(Event::ThreadJoined { agent: agent.clone(), of: of.clone(), bound });
    tell(draft, &of, agent, News::Context, Before::Stays);
}

/// An agent is about to end: it reads no thread any more.
pub(crate) fn leave(draft: &mut Draft<'_>, ix: AgentIx) {
    let Some(head) = draft.threads().read_by(ix) else { return };
    let readers: Vec<AgentIx> = readers(draft, head).into_iter().filter(|reader| *reader != ix).collect();
    let bound = if readers.is_empty() { None } else { least(draft, head, readers.into_iter()) };
    let (agent, of) = (draft.agent_id(ix).clone(), draft.agent_id(head).clone());
    draft.record(Event::ThreadLeft { agent, of, bound });
}

/// An agent has a new context message: whoever reads its thread is told.
pub(crate) fn spread(draft: &mut Draft<'_>, head: AgentIx) {
    let of = draft.agent_id(head).clone();
    for reader in readers(draft, head) {
        if matches!(draft.agent(reader).state, AgentState::Live) {
            let reader = draft.agent_id(reader).clone();
            tell(draft, &of, &reader, News::Context, Before::Stays);
        }
    }
}

/// What of an agent's window belongs to a thread, and how much that may be.
pub(super) fn slice(world: &World, ix: AgentIx) -> Option<Slice> {
    let tokens = world.threads().bound(ix)?;
    let Some(head) = world.threads().read_by(ix) else { return Some(Slice { teller: None, tokens }) };
    let teller = world.agent(ix).progress.window.teller_place(world.agent_id(head))?;
    Some(Slice { teller: Some(teller), tokens })
}

fn readers(world: &World, head: AgentIx) -> Vec<AgentIx> {
    world.threads().of(head).map(|thread| thread.readers.clone()).unwrap_or_default()
}

/// The least share of context messages in the windows of all who know a thread. None if none of them has a bound.
fn least(world: &World, head: AgentIx, readers: impl Iterator<Item = AgentIx>) -> Option<u64> {
    let share = |ix| {
        let size = world.agent(ix).progress.window.size()?;
        let spec = world.turns_of(ix).and_then(|turns| turns.window.as_ref());
        Some(Shares::of(spec.map(|spec| spec.preset).unwrap_or_default(), size).get(Category::Context))
    };
    std::iter::once(head).chain(readers).filter_map(share).min()
}
