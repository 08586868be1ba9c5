//! Model calls that running tools ask for. Such a call takes no slot and never waits for a budget or a person: what it would
//! wait for may be held by the tool that waits for it.

use super::{choose, first_attempt};
use crate::budget::Fit;
use crate::definition::Refusal;
use crate::primitives::limit;
use crate::record::Work;
use crate::rules::Draft;
use crate::world::Call;

/// Why it may not start now, if it may not: nothing starts in a paused or halted tree, and it has to leave its agent enough for
/// a short answer.
pub(super) fn refused(draft: &Draft<'_>, call: &Call) -> Option<Refusal> {
    let ix = call.agent;
    if draft.is_paused(ix) {
        return Some(Refusal::AlreadyPaused { agent: draft.agent_id(ix).clone() });
    }
    if draft.halted().is_some() {
        return Some(Refusal::TreeHalted);
    }
    let Work::Model(work) = &call.work else { return None };
    let agent = draft.agent(ix);
    let input = agent.progress.tokens.saturating_add(limit::RESERVE_INPUT_TOKENS);
    let answer = match choose::model_work(draft, ix, &work.model, input, limit::RESERVE_OUTPUT_TOKENS) {
        Ok(answer) => Work::Model(answer),
        Err(refusal) => return Some(refusal),
    };
    let [asked, answer] =
        [&call.work, &answer].map(|work| first_attempt(draft.definition(), work, draft.now()));
    match draft.ledger().fit(agent.account, &asked.plus(&answer)) {
        Fit::Yes => None,
        Fit::Wait(by, short) | Fit::Never(by, short) => {
            Some(Refusal::Ceiling { account: draft.owner(by), short })
        }
        Fit::Shut(by) => {
            Some(Refusal::AgentStopped { agent: draft.agent_id(ix).clone(), stopped: draft.owner(by) })
        }
    }
}
