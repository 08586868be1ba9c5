//! An agent that is a program: it begins with one call, the program itself, and ends with that. Its model calls come from
//! outside. The program is never started a second time.

use std::fmt::Write as _;

use serde_json::json;

use super::{agent, call, clock, request};
use crate::definition::{GivenMessage, Network, OnLost, ProgramSpec, Refusal, Role, check_text};
use crate::primitives::{AgentId, Body, CallId, FaultKind, ToolName, limit};
use crate::record::{Event, Exit, FailureCode, Outcome, ToolCall, Work};
use crate::rules::Draft;
use crate::world::{AgentIx, World};

/// The name of the call in views.
const PROGRAM: &str = "program";
const LOST: &str = "the process that ran its program died, and a program is not started again";

/// The end of a program, before its call ends.
pub(crate) struct ProgramExit {
    agent: AgentIx,
    exit: Exit,
    result: Option<Body>,
}

/// The program that an agent is, or is a part of.
pub(crate) fn of(world: &World, ix: AgentIx) -> Option<&ProgramSpec> {
    let role = world.definition().roles.get(&world.agents().living(ix)?.terms.role)?;
    role.program.as_deref()
}

/// What a program is told, if a role's agents are one: its prompt, what the agent is given, and its goal. It has no
/// context of ours.
pub(crate) fn task(role: &Role, goal: &str, given: &[GivenMessage]) -> Result<Option<String>, Refusal> {
    let Some(program) = &role.program else { return Ok(None) };
    let mut task = String::new();
    let given = given.iter().map(|given| given.body.text.as_str());
    for part in [program.prompt.as_str()].into_iter().chain(given).filter(|part| !part.is_empty()) {
        // Writing to a string cannot fail.
        let _ = write!(task, "{part}\n\n");
    }
    task.push_str(goal);
    check_text("task of a program", &task, limit::COMMAND_WORD_BYTES_MAX)?;
    Ok(Some(task))
}

/// What a program is told that continues what an ended agent began: its prompt was said then.
pub(crate) fn next_task(role: &Role, goal: &str) -> Result<Option<String>, Refusal> {
    if role.program.is_none() {
        return Ok(None);
    }
    check_text("task of a program", goal, limit::COMMAND_WORD_BYTES_MAX)?;
    Ok(Some(goal.to_owned()))
}

/// Starts the program of an agent that was just spawned, perhaps with a follow-up of an agent that has ended.
pub(crate) fn begin(draft: &mut Draft<'_>, agent: &AgentId, task: &str, continues: Option<&AgentId>) {
    let Some(ix) = draft.agents().find(agent) else { unreachable!("it was just spawned") };
    assert!(request::room_for_call(draft, ix).is_ok(), "a new agent has no calls");
    let call = draft.calls().next_id();
    let work = ToolCall {
        tool: ToolName::of_builtin(PROGRAM),
        ask: None,
        args: match continues {
            Some(continues) => json!({ "continues": continues, "task": task }).to_string(),
            None => json!({ "task": task }).to_string(),
        },
        cost_nanos_max: 0,
        lost: OnLost::Presumed,
        network: Network::Denied,
        is_program: true,
    };
    draft.record(Event::CallAsked { call, agent: agent.clone(), work: Work::Tool(Box::new(work)) });
    call::admit(draft, call, None);
}

/// What the end of a call means for its agent, if the call is its program.
pub(crate) fn end_of(draft: &Draft<'_>, id: CallId, outcome: &Outcome) -> Option<ProgramExit> {
    let call = draft.call(id).filter(|call| call.work.is_program())?;
    let ix = call.agent;
    let (exit, result) = match outcome {
        Outcome::Done { body, is_error, .. } => {
            let given_up = draft.agent(ix).given_up.as_deref().cloned();
            let exit = match given_up {
                Some((account, short)) => Exit::Exhausted { account, short },
                None if *is_error => Exit::failed(FailureCode::ProgramFailed, failure(body)),
                None => Exit::Completed,
            };
            (exit, Some(body.clone()))
        }
        Outcome::Failed { fault } => {
            let code = match fault.kind {
                FaultKind::Invalid => FailureCode::NotStarted,
                _ => FailureCode::ProgramFailed,
            };
            (Exit::failed(code, fault.message.clone()), None)
        }
        Outcome::Lost => (Exit::failed(FailureCode::ProgramLost, LOST), None),
        Outcome::Refused { .. }
        | Outcome::Cancelled
        | Outcome::Answered { .. }
        | Outcome::Approved
        | Outcome::Children { .. }
        | Outcome::Message { .. }
        | Outcome::NobodyLeft
        | Outcome::Expired { .. } => {
            (Exit::failed(FailureCode::ProgramFailed, "the program was stopped"), None)
        }
    };
    Some(ProgramExit { agent: ix, exit, result })
}

/// The first line of what a program said at last.
fn failure(body: &Body) -> String {
    let line = body.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line: String = line.trim().chars().take(200).collect();
    if line.is_empty() { "the program failed".to_owned() } else { format!("the program failed: {line}") }
}

/// Ends an agent with its program, unless its end is decided already.
pub(crate) fn ended(draft: &mut Draft<'_>, ProgramExit { agent, exit, result }: ProgramExit) {
    if draft.agents().living(agent).is_some() {
        agent::end(draft, agent, exit, result);
    }
}

/// Ends an agent whose program may not start.
pub(crate) fn refused(draft: &mut Draft<'_>, id: CallId, refusal: &Refusal) {
    let Some(ix) = draft.call(id).map(|call| call.agent) else { return };
    let late = match refusal {
        Refusal::DeadlinePassed { agent, .. } => clock::too_late(draft, ix, agent),
        _ => None,
    };
    let exit = late.unwrap_or_else(|| Exit::failed(FailureCode::from(refusal), refusal.text(draft.rules())));
    call::end(draft, id, Outcome::Refused { refusal: refusal.clone() });
    ended(draft, ProgramExit { agent: ix, exit, result: None });
}
