//! Tools that need a person's approval. The approval is an ordinary question: it reaches the root, survives restarts,
//! and only its tool waits. A role's setting also applies to everything below it. A person may approve calls like it as well,
//! which are then made without a question: for the agent or for its tree, and never more than what the question showed.

use super::act;
use crate::definition::{Approval, Refusal, RememberedApproval};
use crate::primitives::{CallId, ToolName, UNANSWERED, cut, limit};
use crate::record::{Alarm, Event, OnTimeout, Outcome, Question, ToolAsk, Work};
use crate::rules::{Draft, call};
use crate::world::{AgentIx, Call, World};

/// The most bytes of arguments that a person is shown.
const ARGS_SHOWN: usize = 2 * 1_024;
/// Answers that approve.
const YES: [&str; 6] = ["yes", "y", "ok", "allow", "approve", "approved"];

/// The strictest setting of an agent's role and of all roles above it.
pub(super) fn approval(world: &World, ix: AgentIx, tool: &ToolName) -> Approval {
    let path = std::iter::once(ix).chain(world.agents().above(ix));
    let said = path.filter_map(|ix| world.turns_of(ix)?.approvals.get(tool).copied());
    said.max().unwrap_or_default()
}

pub(super) fn ask(draft: &mut Draft<'_>, ix: AgentIx, place: u32, ask: &ToolAsk) -> Result<(), Refusal> {
    crate::rules::request::room_for_call(draft, ix)?;
    let (call, agent) = (draft.calls().next_id(), draft.agent_id(ix).clone());
    let args = cut(&ask.args, ARGS_SHOWN);
    let more = if args.len() < ask.args.len() { " …" } else { "" };
    let text = format!("May `{agent}` call `{}` with {args}{more}? Answer yes, or say why not.", ask.tool);
    let question = Question { approves: Some(Box::new(ask.clone())), ..Question::new(text, OnTimeout::Fail) };
    let at = draft.now().after_ms(limit::QUESTION_TIMEOUT_MS);
    let alarm = Alarm { timer: draft.next_timer(), at };
    draft.record(Event::QuestionAsked { call, agent, ask: Some(place), question, alarm });
    Ok(())
}

/// Whether a person allowed such calls before.
pub(super) fn is_remembered(world: &World, ix: AgentIx, tool: &ToolName, ask: &ToolAsk) -> bool {
    let subject = world.definition().subject(tool, &ask.args);
    subject.is_some_and(|subject| world.approvals().covers(ix, tool, &subject))
}

/// A person approves a call, and others like it from now on: at most what was offered with the question. Calls that
/// wait for the same approval are made as well.
pub(crate) fn remember(
    draft: &mut Draft<'_>,
    id: CallId,
    remembered: &RememberedApproval,
) -> Result<(), Refusal> {
    let pattern = &remembered.pattern;
    let Some((agent, approves)) = waiting(draft, id) else {
        return Err(Refusal::ApprovalTooWide { pattern: pattern.clone(), offered: None });
    };
    let offered = draft.definition().offered(&approves.tool, &approves.args);
    let tool: Option<ToolName> = approves.tool.parse().ok();
    let subject = tool.as_ref().and_then(|tool| draft.definition().subject(tool, &approves.args));
    let (Some(tool), Some(subject), Some(widest)) = (tool, subject, &offered) else {
        return Err(Refusal::ApprovalTooWide { pattern: pattern.clone(), offered });
    };
    if !widest.covers_all_of(pattern) || !pattern.covers(&subject) {
        return Err(Refusal::ApprovalTooWide { pattern: pattern.clone(), offered });
    }
    let (count, count_max) = (draft.approvals().count(), limit::APPROVALS_MAX);
    if count >= count_max {
        return Err(Refusal::ApprovalsLimit { count, count_max });
    }
    let RememberedApproval { scope, pattern } = remembered.clone();
    let agent = draft.agent_id(agent).clone();
    draft.record(Event::ApprovalRemembered { agent, tool: tool.clone(), scope, pattern });
    let open: Vec<CallId> = draft.calls().all().map(|(id, _)| id).collect();
    for id in open {
        let covered = waiting(draft, id)
            .filter(|(ix, ask)| ask.tool == tool.as_str() && is_remembered(draft, *ix, &tool, ask));
        if let Some((ix, ask)) = covered {
            allow(draft, id, ix, &ask);
        }
    }
    Ok(())
}

/// The agent and the tool call of a question about a tool.
fn waiting(draft: &Draft<'_>, id: CallId) -> Option<(AgentIx, ToolAsk)> {
    let call = draft.call(id)?;
    let Work::Question(Question { approves: Some(approves), .. }) = &call.work else { return None };
    Some((call.agent, approves.as_ref().clone()))
}

/// Ends a question with a yes, and calls its tool.
fn allow(draft: &mut Draft<'_>, id: CallId, ix: AgentIx, approves: &ToolAsk) {
    let place = draft.call(id).and_then(Call::ask);
    call::end(draft, id, Outcome::Approved);
    if let Some(place) = place {
        act::approved(draft, ix, place, approves);
    }
}

/// Handles an answer, or a timeout. Returns whether the question was about a tool; if so, the question has ended and
/// the tool is called or not.
pub(crate) fn answered(draft: &mut Draft<'_>, id: CallId, answer: Option<&str>) -> bool {
    let Some((ix, approves)) = waiting(draft, id) else { return false };
    let word = answer.map(|answer| answer.trim().trim_end_matches(['.', '!']).to_lowercase());
    if word.is_some_and(|word| YES.contains(&word.as_str())) {
        allow(draft, id, ix, &approves);
        return true;
    }
    let is_expired = answer.is_none() && draft.rules() >= 3;
    let answer = answer.map_or(UNANSWERED.under(draft.rules()), str::trim);
    let answer = cut(if answer.is_empty() { "no" } else { answer }, limit::NOTICE_BYTES_MAX / 2);
    let refusal = match approves.tool.parse() {
        Ok(tool) if is_expired => Refusal::ApprovalExpired { tool },
        Ok(tool) => Refusal::NotApproved { tool, answer },
        Err(_) => Refusal::UnknownTool { tool: approves.tool, known: Vec::new() },
    };
    call::end(draft, id, Outcome::Refused { refusal });
    true
}
