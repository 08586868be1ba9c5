//! Continues an answer that was cut at its output cap in one more turn, if that fits. The two texts form one answer.
//! Only once: an answer that is cut again is partial.

use super::{Said, ask, telling_left, wrap_up};
use crate::budget::Fit;
use crate::record::{Event, ModelCall, Work};
use crate::rules::{Draft, call};
use crate::words::{Body, By, Envelope, limit};
use crate::world::AgentIx;

const NOTE: &str = "Your answer was cut at its output cap. Go on exactly where it stopped: do not repeat anything, do not explain, and be brief.";
/// For a model that only thought: there is no text to go on from.
const NOTE_IF_SILENT: &str =
    "You reached your output cap before you said anything. Think less this time, and answer briefly.";

/// Requests the continuation, if it is allowed and fits. Returns whether it did.
pub(super) fn is_continued(draft: &mut Draft<'_>, ix: AgentIx, said: &Said<'_>) -> bool {
    if draft.rules() < 4 || said.continued {
        return false;
    }
    let note = if said.is_silent { NOTE_IF_SILENT } else { NOTE };
    let Some(work) = room(draft, ix, note) else { return false };
    let (from, to, envelope) = (By::Person, draft.agent_id(ix).clone(), Envelope::default());
    draft.record(Event::MessageSent { from, to, body: Body::text(note), envelope });
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
    let note = note.len() as u64 + limit::SENDER_TOKENS + limit::MESSAGE_TOKENS;
    let window = &agent.progress.window;
    let fits = window.size().is_none_or(|size| window.tokens().saturating_add(note) <= size);
    let tokens = if window.size().is_some() { window.tokens() } else { agent.progress.tokens };
    let model = &agent.charter.model;
    let Work::Model(call) = call::turn_work(draft, ix, model, tokens.saturating_add(note)).ok()? else {
        return None;
    };
    let work = Work::Model(ModelCall { continues: true, ..call });
    let asked = call::first_attempt(draft.definition(), &work, draft.now());
    let is_affordable = matches!(draft.ledger().fit(agent.account, &asked), Fit::Yes | Fit::Wait(..));
    (fits && is_affordable).then_some(work)
}
