//! Shared threads: a new reader gets the thread's messages, every reader gets new ones, and each time a reader joins
//! or leaves, the bound becomes the smallest that any reader has room for.

use super::share::{Before, share};
use crate::definition::Shares;
use crate::primitives::{AgentId, Category};
use crate::record::Event;
use crate::rules::Draft;
use crate::window::{SharedContent, Slice};
use crate::world::{AgentIx, AgentState, World};

/// A new agent joins its parent's thread: the one that the parent reads, or else the parent's own.
pub(super) fn join(draft: &mut Draft<'_>, parent: AgentIx, agent: &AgentId) {
    let Some(ix) = draft.agents().find(agent) else { return };
    let head = draft.threads().read_by(parent).unwrap_or(parent);
    let readers = readers(draft, head).into_iter().chain([ix]);
    let bound = least(draft, head, readers);
    let of = draft.agent_id(head).clone();
    draft.record(Event::ThreadJoined { agent: agent.clone(), of: of.clone(), bound });
    share(draft, &of, agent, SharedContent::Context, Before::Stays);
}

/// Removes an agent that is about to end from the thread that it reads.
pub(crate) fn leave(draft: &mut Draft<'_>, ix: AgentIx) {
    let Some(head) = draft.threads().read_by(ix) else { return };
    let readers: Vec<AgentIx> = readers(draft, head).into_iter().filter(|reader| *reader != ix).collect();
    let bound = if readers.is_empty() { None } else { least(draft, head, readers.into_iter()) };
    let (agent, of) = (draft.agent_id(ix).clone(), draft.agent_id(head).clone());
    draft.record(Event::ThreadLeft { agent, of, bound });
}

/// Delivers an agent's new context messages to the readers of its thread.
pub(crate) fn spread(draft: &mut Draft<'_>, head: AgentIx) {
    let of = draft.agent_id(head).clone();
    for reader in readers(draft, head) {
        if matches!(draft.agent(reader).state, AgentState::Live) {
            let reader = draft.agent_id(reader).clone();
            share(draft, &of, &reader, SharedContent::Context, Before::Stays);
        }
    }
}

/// The part of an agent's window that belongs to a thread, and its bound.
pub(super) fn slice(world: &World, ix: AgentIx) -> Option<Slice> {
    let tokens = world.agent(ix).progress.window.uncorrected(world.threads().bound(ix)?);
    let Some(head) = world.threads().read_by(ix) else { return Some(Slice { teller: None, tokens }) };
    let teller = world.agent(ix).progress.window.teller_place(world.agent_id(head))?;
    Some(Slice { teller: Some(teller), tokens })
}

fn readers(world: &World, head: AgentIx) -> Vec<AgentIx> {
    world.threads().get(head).map(|thread| thread.readers.clone()).unwrap_or_default()
}

/// The smallest share for context messages in the windows of all agents of a thread. `None` if no window is bounded.
fn least(world: &World, head: AgentIx, readers: impl Iterator<Item = AgentIx>) -> Option<u64> {
    let share = |ix| {
        let size = world.agent(ix).progress.window.size()?;
        let spec = world.turns_of(ix).and_then(|turns| turns.window.as_ref());
        Some(Shares::new(spec.map(|spec| spec.preset).unwrap_or_default(), size).get(Category::Context))
    };
    std::iter::once(head).chain(readers).filter_map(share).min()
}
