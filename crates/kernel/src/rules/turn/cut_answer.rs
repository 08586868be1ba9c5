//! Continues an answer that was cut at its output cap in one more turn, if that fits. The two texts form one answer.
//! Only once: an answer that is cut again is partial.

use super::{Said, ask, runtime_note, telling_left, whole_window, wrap_up};
use crate::budget::Fit;
use crate::primitives::{Reworded, TokenCount, limit};
use crate::record::{ModelCall, Work};
use crate::rules::{Draft, call};
use crate::world::AgentIx;

const NOTE: Reworded = Reworded::new(
    "Your answer was cut off at its output cap. Continue exactly where it stopped: do not repeat anything, do not explain, and be brief.",
    "Your answer was cut at its output cap. Go on exactly where it stopped: do not repeat anything, do not explain, and be brief.",
);
/// For a model that only thought: there is no text to continue.
const NOTE_IF_SILENT: &str =
    "You reached your output cap before you said anything. Think less this time, and answer briefly.";

/// Requests the continuation, if it is allowed and fits. Returns whether it did.
pub(super) fn is_continued(draft: &mut Draft<'_>, ix: AgentIx, said: &Said<'_>) -> bool {
    if draft.rules() < 4 || said.continued {
        return false;
    }
    let note = if said.is_silent { NOTE_IF_SILENT } else { NOTE.under(draft.rules()) };
    let Some(work) = room(draft, ix, note) else { return false };
    runtime_note::send(draft, ix, note);
    let work = telling_left(draft, ix, work);
    ask(draft, ix, work);
    true
}

/// The call, if turns, budget and window have room for it as they are. The window is not cut for it: that could
/// remove the text to continue.
fn room(draft: &Draft<'_>, ix: AgentIx, note: &str) -> Option<Work> {
    let (agent, turns) = (draft.agent(ix), draft.turns_of(ix)?);
    if agent.progress.turns >= turns.turns_max || wrap_up::is_due(draft, ix) {
        return None;
    }
    let window = &agent.progress.window;
    let note = TokenCount::of_bytes(note.len()).plus(limit::SENDER_TOKENS).plus(limit::MESSAGE_TOKENS);
    let with_note = window.counted().plus(window.count(note));
    let fits = window.room().is_none_or(|size| with_note.estimate() <= size);
    let tokens = match window.size() {
        Some(_) => with_note.bound(),
        None => agent.progress.tokens.saturating_add(note.bound()),
    };
    let call = whole_window(draft, ix, tokens).ok()?;
    let work = Work::Model(ModelCall { continues: true, ..call });
    let asked = call::first_attempt(draft.definition(), &work, draft.now());
    let is_affordable = matches!(draft.ledger().fit(agent.account, &asked), Fit::Yes | Fit::Wait(..));
    (fits && is_affordable).then_some(work)
}
