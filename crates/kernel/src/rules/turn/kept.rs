//! Agents that are kept: after its answer, such an agent does not end but waits for a person, whose next message continues it.
//! The root of a conversation is one, and every agent that a conversation is handed to.

use crate::definition::{Refusal, check_said};
use crate::primitives::{Actor, AgentId, Body, CallId, Envelope, OutsiderKind, limit};
use crate::record::{Alarm, Event, Exit, OnTimeout, Outcome, Question, Work};
use crate::rules::{Draft, agent, call};
use crate::world::{AgentIx, World};

/// What is asked after an answer. People see the answer above it.
const NEXT: &str = "What next?";

/// Whether an agent waits for a person after its answer.
pub(crate) fn is_kept(world: &World, ix: AgentIx) -> bool {
    let agents = world.agents();
    let talks = agents.living(ix).is_some_and(|agent| agent.terms.talks);
    talks || (world.definition().is_kept && agents.parent(ix).is_none())
}

/// Waits for a person.
pub(crate) fn wait_for_person(draft: &mut Draft<'_>, ix: AgentIx) {
    let (call, agent) = (draft.calls().next_id(), draft.agent_id(ix).clone());
    let question = Question { is_after_answer: true, ..Question::new(NEXT, OnTimeout::Fail) };
    let alarm = Alarm { timer: draft.next_timer(), at: draft.now().after_ms(limit::KEPT_MS) };
    draft.record(Event::QuestionAsked { call, agent, ask: None, question, alarm });
}

/// Whether an agent has answered and waits for a person.
pub(crate) fn waits_after_answer(world: &World, ix: AgentIx) -> bool {
    waiting(world, ix).is_some()
}

/// The wait of an agent after its answer.
fn waiting(world: &World, ix: AgentIx) -> Option<CallId> {
    let open = world.agents().living(ix)?.open.iter().copied();
    let waits = |work: &Work| matches!(work, Work::Question(question) if question.is_after_answer);
    open.into_iter().find(|id| world.call(*id).is_some_and(|call| waits(&call.work)))
}

/// What a person wrote is the agent's next message. Returns whether the question was such a wait.
pub(crate) fn continue_with(draft: &mut Draft<'_>, question: CallId, by: &Actor, answer: &Body) -> bool {
    let Some(ix) = draft.call(question).map(|call| call.agent) else { return false };
    if waiting(draft, ix) != Some(question) {
        return false;
    }
    let (from, to, body) = (by.clone(), draft.agent_id(ix).clone(), answer.clone());
    draft.record(Event::MessageSent { from, to, body, envelope: Envelope::default() });
    call::wake_waits(draft, ix);
    ends(draft, ix, answer);
    true
}

/// What a person says to an agent ends its wait, if there is one. Notes of ours do not.
pub(crate) fn hear(draft: &mut Draft<'_>, ix: AgentIx, by: &Actor, message: &Body) {
    let is_ours = |kind| matches!(kind, OutsiderKind::Runtime | OutsiderKind::Hook | OutsiderKind::Gateway);
    if matches!(by, Actor::Outside(outsider) if !is_ours(outsider.kind)) {
        ends(draft, ix, message);
    }
}

fn ends(draft: &mut Draft<'_>, ix: AgentIx, message: &Body) {
    // Once its time is over, its timer ends it.
    let in_time = |question: &CallId| draft.late_answer(*question, draft.now()).is_none();
    if let Some(question) = waiting(draft, ix).filter(in_time) {
        let answer = Body::text(message.text.clone());
        call::end(draft, question, Outcome::Answered { answer, is_default: false });
    }
}

/// The wait is over: the agent ends with its last answer. Returns whether the question was such a wait.
pub(crate) fn expire(draft: &mut Draft<'_>, question: CallId) -> bool {
    let Some(ix) = draft.call(question).map(|call| call.agent) else { return false };
    let waits = waiting(draft, ix) == Some(question);
    if waits {
        agent::end(draft, ix, Exit::Completed, None);
    }
    waits
}

/// An agent whose time is up while it waits ends with its last answer. Returns whether it waited.
pub(crate) fn time_is_up(draft: &mut Draft<'_>, ix: AgentIx) -> bool {
    let waits = waiting(draft, ix).is_some();
    if waits {
        agent::end(draft, ix, Exit::Completed, None);
    }
    waits
}

/// An agent that a conversation was handed to gives it back.
pub(crate) fn hand_back(draft: &mut Draft<'_>, ix: AgentIx, message: String) -> Result<(), Refusal> {
    if !draft.agent(ix).terms.talks {
        return Err(Refusal::NothingToHandBack);
    }
    check_said("message", &message, limit::TEXT_BYTES_MAX)?;
    agent::end(draft, ix, Exit::Completed, Some(Body::text(message)));
    Ok(())
}

/// Ends an agent with the answer that it gave last.
pub(crate) fn conclude(draft: &mut Draft<'_>, agent: &AgentId) -> Result<(), Refusal> {
    let found = draft.agents().find(agent).ok_or_else(|| Refusal::UnknownAgent { agent: agent.clone() })?;
    let ix = draft.living(agent).map(|_| found)?;
    if waiting(draft, ix).is_none() {
        return Err(Refusal::NothingToConclude { agent: agent.clone() });
    }
    agent::end(draft, ix, Exit::Completed, None);
    Ok(())
}
