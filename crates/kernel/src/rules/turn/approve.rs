//! Tools that need a person's approval. The approval is an ordinary question: it reaches the root, survives restarts,
//! and only its tool waits. A role's setting also applies to everything below it.

use super::act;
use crate::definition::{Approval, Refusal};
use crate::primitives::{CallId, ToolName, cut, limit};
use crate::record::{Alarm, Event, OnTimeout, Outcome, Question, ToolAsk, Work};
use crate::rules::{Draft, call};
use crate::world::{AgentIx, World};

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

/// Handles an answer, or a timeout. Returns whether the question was about a tool; if so, the question has ended and
/// the tool is called or not.
pub(crate) fn answered(draft: &mut Draft<'_>, id: CallId, answer: Option<&str>) -> bool {
    let Some(call) = draft.call(id) else { return false };
    let Work::Question(Question { approves: Some(approves), .. }) = &call.work else { return false };
    let (ix, place, approves) = (call.agent, call.ask(), approves.as_ref().clone());
    let word = answer.map(|answer| answer.trim().trim_end_matches(['.', '!']).to_lowercase());
    if word.is_some_and(|word| YES.contains(&word.as_str())) {
        call::end(draft, id, Outcome::Approved);
        if let Some(place) = place {
            act::approved(draft, ix, place, &approves);
        }
        return true;
    }
    let is_expired = answer.is_none() && draft.rules() >= 3;
    let answer = answer.map_or("nobody answered in time", str::trim);
    let answer = cut(if answer.is_empty() { "no" } else { answer }, limit::NOTICE_BYTES_MAX / 2);
    let refusal = match approves.tool.parse() {
        Ok(tool) if is_expired => Refusal::ApprovalExpired { tool },
        Ok(tool) => Refusal::NotApproved { tool, answer },
        Err(_) => Refusal::UnknownTool { tool: approves.tool, known: Vec::new() },
    };
    call::end(draft, id, Outcome::Refused { refusal });
    true
}
