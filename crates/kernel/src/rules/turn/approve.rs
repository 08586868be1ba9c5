//! Tools that need a person's approval. The approval is an ordinary question: it reaches the root, survives restarts,
//! and only its tool waits. A role's setting also applies to everything below it. A person may approve calls like it as well,
//! which are then made without a question: for the agent or for its tree, and never more than what the question showed.

use super::act;
use crate::definition::{Approval, Network, Refusal, RememberedApproval, SubjectPattern};
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

/// Asks a person about a call, and about hosts that it connects to beside those of its agent.
pub(super) fn ask(
    draft: &mut Draft<'_>,
    ix: AgentIx,
    place: u32,
    ask: &ToolAsk,
    network: Network,
) -> Result<(), Refusal> {
    crate::rules::request::room_for_call(draft, ix)?;
    let (call, agent) = (draft.calls().next_id(), draft.agent_id(ix).clone());
    let args = cut(&ask.args, ARGS_SHOWN);
    let more = if args.len() < ask.args.len() { " …" } else { "" };
    let hosts = if network.is_denied() { String::new() } else { format!("connect to {network} and ") };
    let text =
        format!("May `{agent}` {hosts}call `{}` with {args}{more}? Answer yes, or say why not.", ask.tool);
    let question =
        Question { approves: Some(Box::new(ask.clone())), network, ..Question::new(text, OnTimeout::Fail) };
    let policy = draft.turns_of(ix).and_then(|turns| turns.questions.as_deref());
    let ms = policy.and_then(|policy| policy.timeout_ms).unwrap_or(limit::QUESTION_TIMEOUT_MS);
    let at = draft.now().after_ms(ms);
    let alarm = Alarm { timer: draft.next_timer(), at };
    draft.record(Event::QuestionAsked { call, agent, ask: Some(place), question, alarm });
    Ok(())
}

/// Whether a person allowed such calls before.
pub(super) fn is_remembered(world: &World, ix: AgentIx, tool: &ToolName, ask: &ToolAsk) -> bool {
    let subject = world.definition().subject(tool, &ask.args);
    subject.is_some_and(|subject| world.approvals().covers(ix, tool, &subject))
}

/// Whether nothing of a question about a tool is left to be asked.
fn is_settled(world: &World, ix: AgentIx, tool: &ToolName, waiting: &Waiting) -> bool {
    let needs_approval = approval(world, ix, tool) == Approval::Ask;
    let hosts_left = waiting.network.beyond(&world.approvals().hosts(ix, tool));
    hosts_left.is_denied() && (!needs_approval || is_remembered(world, ix, tool, &waiting.ask))
}

/// A person approves a call, and from now on others like it or calls that connect to the same hosts: at most what was
/// offered with the question. Calls that wait for the same approval are made as well.
pub(crate) fn remember(
    draft: &mut Draft<'_>,
    answered_id: CallId,
    remembered: &RememberedApproval,
) -> Result<(), Refusal> {
    let pattern = &remembered.pattern;
    let Some(answered) = waiting(draft, answered_id) else {
        return Err(Refusal::ApprovalTooWide { pattern: pattern.clone(), offered: None });
    };
    let (ask, agent) = (&answered.ask, answered.agent);
    let offered = answered.offered.clone();
    let covers_call = |tool: &ToolName| match pattern {
        SubjectPattern::Hosts(hosts) => answered.network.rules().all(|rule| hosts.contains(rule)),
        SubjectPattern::Exact(_) | SubjectPattern::Beginning(_) => {
            draft.definition().subject(tool, &ask.args).is_some_and(|subject| pattern.covers(&subject))
        }
    };
    let tool: Option<ToolName> = ask.tool.parse().ok();
    let tool = tool.filter(|tool| {
        offered.as_ref().is_some_and(|widest| widest.covers_all_of(pattern)) && covers_call(tool)
    });
    let Some(tool) = tool else {
        return Err(Refusal::ApprovalTooWide { pattern: pattern.clone(), offered });
    };
    let (count, count_max) = (draft.approvals().count(), limit::APPROVALS_MAX);
    if count >= count_max {
        return Err(Refusal::ApprovalsLimit { count, count_max });
    }
    let RememberedApproval { scope, pattern } = remembered.clone();
    let agent = draft.agent_id(agent).clone();
    draft.record(Event::ApprovalRemembered { agent, tool: tool.clone(), scope, pattern });
    let open: Vec<CallId> = draft.calls().all().map(|(id, _)| id).collect();
    for id in open {
        let covered =
            waiting(draft, id).filter(|waiting| waiting.ask.tool == tool.as_str()).filter(|waiting| {
                // The person saw all of the one that was answered.
                id == answered_id || is_settled(draft, waiting.agent, &tool, waiting)
            });
        if let Some(waiting) = covered {
            allow(draft, id, &waiting);
        }
    }
    Ok(())
}

/// A question about a tool.
struct Waiting {
    agent: AgentIx,
    ask: ToolAsk,
    network: Network,
    offered: Option<SubjectPattern>,
}

fn waiting(draft: &Draft<'_>, id: CallId) -> Option<Waiting> {
    let call = draft.call(id)?;
    let Work::Question(question) = &call.work else { return None };
    let (ask, network) = (question.approves.as_deref()?.clone(), question.network.clone());
    Some(Waiting { agent: call.agent, ask, network, offered: question.offered(draft.definition()) })
}

/// Ends a question with a yes, and calls its tool.
fn allow(draft: &mut Draft<'_>, id: CallId, waiting: &Waiting) {
    let place = draft.call(id).and_then(Call::ask);
    call::end(draft, id, Outcome::Approved);
    if let Some(place) = place {
        act::approved(draft, waiting.agent, place, &waiting.ask, &waiting.network);
    }
}

/// Handles an answer, or a timeout. Returns whether the question was about a tool; if so, the question has ended and
/// the tool is called or not.
pub(crate) fn answered(draft: &mut Draft<'_>, id: CallId, answer: Option<&str>) -> bool {
    let Some(waiting) = waiting(draft, id) else { return false };
    let word = answer.map(|answer| answer.trim().trim_end_matches(['.', '!']).to_lowercase());
    if word.is_some_and(|word| YES.contains(&word.as_str())) {
        allow(draft, id, &waiting);
        return true;
    }
    let is_expired = answer.is_none() && draft.rules() >= 3;
    let answer = answer.map_or(UNANSWERED.under(draft.rules()), str::trim);
    let answer = cut(if answer.is_empty() { "no" } else { answer }, limit::NOTICE_BYTES_MAX / 2);
    let refusal = match waiting.ask.tool.parse() {
        Ok(tool) if is_expired => Refusal::ApprovalExpired { tool },
        Ok(tool) => Refusal::NotApproved { tool, answer },
        Err(_) => Refusal::UnknownTool { tool: waiting.ask.tool, known: Vec::new() },
    };
    call::end(draft, id, Outcome::Refused { refusal });
    true
}
