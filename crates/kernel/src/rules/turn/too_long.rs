//! A packet that is longer than its model takes: it is cut, once per call, and the call is tried again.
//!
//! The cut stays, so the next packets do not fail in the same way. The first message and the newest one that
//! wrote are kept; if nothing else is there, cutting cannot help.

use super::wrap_up;
use crate::primitives::{CallId, Reworded, limit};
use crate::record::{Cut, Event, ModelCall, Shortened, Span, Work};
use crate::rules::Draft;
use crate::window::{TooSmall, Window, trim};
use crate::world::{AgentIx, World};

/// What people can do about it, at the end of the error.
pub(super) const REMEDY: Reworded = Reworded::new(
    "; set the model's `context` to its real size, give the agent a smaller `window.size`, or ask for less at once",
    "; set the model's `context` to what it takes, give the agent a smaller `window.size`, or ask for less at once",
);

/// How a packet becomes shorter.
pub(crate) struct Shorter {
    cut: Cut,
    input_tokens: u64,
}

/// What an ordinary turn is tried again with. `None` if it was cut before, or nothing can be left out. The text that
/// an answer continues stays, and an agent's last call has its own cut.
pub(crate) fn shorter(world: &World, id: CallId) -> Option<Shorter> {
    let call = world.call(id)?;
    let Work::Model(work @ ModelCall { summary: None, continues: false, wrap_up: None, .. }) = &call.work
    else {
        return None;
    };
    let is_shortened = call.past().is_some_and(|past| past.is_shortened);
    if world.rules() < 5 || is_shortened || world.turns_of(call.agent).is_none() {
        return None;
    }
    let window = &world.agent(call.agent).progress.window;
    let cut = cut(world, call.agent, &window.by_bounds(), work.counted())?;
    let mut left = window.clone();
    left.cut(&cut);
    let gone = window.tokens().checked_sub(left.tokens()).filter(|gone| *gone > 0)?;
    Some(Shorter { cut, input_tokens: work.counted().saturating_sub(gone) })
}

/// Records it.
pub(crate) fn shorten(draft: &mut Draft<'_>, id: CallId, shorter: Shorter) {
    let Some(ix) = draft.call(id).map(|call| call.agent) else { return };
    let Shorter { cut, input_tokens } = shorter;
    let left_out = draft.agent(ix).progress.window.dropped(&cut);
    let (agent, shortened) = (draft.agent_id(ix).clone(), Some(Shortened { call: id, input_tokens }));
    draft.record(Event::ContextCut { agent, cut, left_out, summary: None, shortened });
}

/// What leaves the window so that the packet is well below what it was, or else everything that may leave it. Messages
/// that came since are not in the packet and stay.
fn cut(world: &World, ix: AgentIx, window: &Window, input_tokens: u64) -> Option<Cut> {
    let read = window.headers().len() - window.unread();
    let room = input_tokens / 100 * limit::SHORTENED_PERCENT;
    let size = window.tokens().saturating_sub(input_tokens.saturating_sub(room));
    let cut = match trim(window, &wrap_up::bounds(world, ix, size)) {
        Ok(cut) => cut,
        // The digest of what is left out also needs room.
        Err(TooSmall { tokens, .. }) => {
            let size = tokens.saturating_add(tokens / 8).saturating_add(limit::FOLDED_TOKENS_MIN);
            trim(window, &wrap_up::bounds(world, ix, size)).ok().flatten()
        }
    }?;
    let mut drop = Vec::new();
    for place in Span::places(&cut.drop).filter(|place| *place < read) {
        Span::join(&mut drop, place as u32, place as u32 + 1);
    }
    let left = read - Span::places(&drop).count();
    let blank = cut.blank.into_iter().filter(|blank| (blank.at as usize) < left).collect();
    (!drop.is_empty()).then_some(Cut { drop, blank, folded: cut.folded })
}
