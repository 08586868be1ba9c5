//! Turns: an agent's model answers, the tools it asked for run, and when all of them have ended its model takes the
//! next turn, until there is an answer or a limit or signal stops it.

mod act;
mod approve;
mod builtin;
mod cut_answer;
mod extra_hosts;
mod kept;
mod opening;
mod repair;
mod repeats;
mod reserve;
mod runtime_note;
mod share;
mod summary;
mod thread;
mod too_long;
mod wrap_up;

use crate::context::Goal;
use crate::definition::{Mismatch, Refusal};
use crate::primitives::{ALL_ALLOWED, AgentId, FaultKind, Reworded, cut, limit};
use crate::record::{Event, Exit, FailureCode, ModelCall, Outcome, RefusedAsk, ToolAsk, Work};
use crate::rules::{Draft, agent, call, clock};
use crate::window::Bounds;
use crate::world::{AgentIx, AgentState, World};
use crate::{context, window};

use summary::Telling;

use crate::record::WrapUpReason;
pub(crate) use approve::{answered, remember};
pub(crate) use kept::{
    conclude, continue_with, expire, hand_back, hear, is_kept, time_is_up, wait_for_person,
    waits_after_answer,
};
pub(crate) use opening::Opening;
pub(crate) use opening::Wish;
pub(crate) use opening::check_category;
pub(crate) use reserve::Lead;
pub(crate) use reserve::check_first_call;
pub(crate) use reserve::with_reserve;
pub(crate) use share::Before;
pub(crate) use share::share;
pub(crate) use thread::leave;
pub(crate) use thread::spread;
pub(crate) use too_long::{Shorter, shorten, shorter};
pub(crate) use wrap_up::is_last_call_due;
pub(crate) use wrap_up::kept_back;
pub(crate) use wrap_up::raise_notes;
pub(crate) use wrap_up::replaces;
pub(crate) use wrap_up::tell_raised;
pub(crate) use wrap_up::time_is_short;
pub(crate) use wrap_up::will_wrap_up;

/// Starts the first turn of an agent that takes turns.
pub(crate) fn begin(draft: &mut Draft<'_>, agent: &AgentId, goal: Goal<'_>) {
    let Some(ix) = draft.agents().find(agent) else { unreachable!("it was just spawned") };
    let Some(turns) = draft.turns_of(ix) else { return };
    let first = context::first_tokens(draft.definition(), &draft.agent(ix).terms.caps, turns, goal);
    // Messages sent before it existed are part of its first turn.
    let letters = draft.agent(ix).progress.tokens;
    ask_model(draft, ix, first.bound().saturating_add(letters));
}

pub(crate) struct Said<'a> {
    pub(crate) asks: &'a [ToolAsk],
    /// Those that cannot be made.
    pub(crate) refused: &'a [RefusedAsk],
    /// How it fails to match the agent's schema.
    pub(crate) mismatch: Option<&'a Mismatch>,
    /// The output cap at which it was cut, if it was.
    pub(crate) cut_at: Option<u64>,
    /// Whether it was cut before it had any text: the model only thought.
    pub(crate) is_silent: bool,
    /// Whether it continues an answer that was cut.
    pub(crate) continued: bool,
    /// Why it was the agent's last call, if it was.
    pub(crate) wrap_up: Option<WrapUpReason>,
}

/// Handles a model's answer: calls its tools, or ends the agent, unless the answer was cut or does not match the
/// schema.
pub(crate) fn said(draft: &mut Draft<'_>, ix: AgentIx, said: &Said<'_>) {
    let asks = said.asks;
    let Some(agent) = draft.agents().living(ix) else { return };
    if !matches!(agent.state, AgentState::Live) || draft.turns_of(ix).is_none() {
        return;
    }
    if let Some(reason) = &said.wrap_up {
        return wrap_up::over(draft, ix, reason.clone());
    }
    // Messages that arrived meanwhile are read first.
    if asks.is_empty() && agent.inbox.is_empty() {
        if said.cut_at.is_some() && cut_answer::is_continued(draft, ix, said) {
            return;
        }
        match (said.mismatch, said.cut_at) {
            (Some(mismatch), cut_at) => repair::repair(draft, ix, mismatch, cut_at),
            (None, Some(output_cap)) => agent::end(draft, ix, truncated(output_cap), None),
            (None, None) if is_kept(draft, ix) => wait_for_person(draft, ix),
            (None, None) => agent::end(draft, ix, Exit::Completed, None),
        }
        return;
    }
    if wrap_up::instead_of_tools(draft, ix, asks) {
        return;
    }
    for (place, ask) in asks.iter().take(limit::ASKS_MAX).enumerate() {
        // A tool may end its own caller: a question's policy can cancel it.
        if draft.agents().living(ix).is_none_or(|agent| !matches!(agent.state, AgentState::Live)) {
            return;
        }
        match said.refused.iter().find(|refused| refused.place as usize == place) {
            Some(refused) => act::refuse(draft, ix, place as u32, ask, &refused.reason),
            None => act::act(draft, ix, place as u32, ask),
        }
    }
}

/// An agent whose answer was cut ends with a partial result.
fn truncated(output_cap: u64) -> Exit {
    let message = format!(
        "the answer was cut at its output cap of {output_cap} tokens: raise `limits.max_tokens_per_step`, or ask for less"
    );
    Exit::failed(FailureCode::OutputTruncated, message)
}

/// Starts an agent's next turn if it has no open calls.
pub(crate) fn advance(draft: &mut Draft<'_>, ix: AgentIx) {
    let Some(agent) = draft.agents().living(ix) else { return };
    let idle = matches!(agent.state, AgentState::Live) && agent.open.is_empty();
    if !idle || draft.turns_of(ix).is_none() {
        return;
    }
    let (progress, is_read) = (&agent.progress, agent.inbox.is_empty());
    // A call that was dropped because time is short, or lost when it was, is followed by the last call.
    let is_dropped = match progress.failed() {
        Some(Outcome::Cancelled) => true,
        Some(Outcome::Lost) => draft.rules() >= 6 && wrap_up::is_on(draft, ix),
        _ => false,
    };
    let is_last_due = is_dropped && progress.is_time_short() && progress.wrapped_up().is_none();
    match (progress.failed(), progress.wraps_up()) {
        (Some(_), Some(reason)) => wrap_up::over(draft, ix, reason.clone()),
        (Some(outcome), None) if is_read && !is_last_due => {
            let exit = late_exit(draft, ix, outcome).unwrap_or_else(|| failure(draft.rules(), outcome));
            agent::end(draft, ix, exit, None);
        }
        (Some(_) | None, _) => {
            if !repeats::ends(draft, ix) {
                ask_model(draft, ix, draft.agent(ix).progress.tokens);
            }
        }
    }
}

/// Cut to the journal's limits.
pub(crate) fn bounded(asks: &[ToolAsk]) -> Vec<ToolAsk> {
    let bounded = |ask: &ToolAsk| ToolAsk {
        id: cut(&ask.id, limit::NAME_BYTES_MAX),
        tool: cut(&ask.tool, limit::NAME_BYTES_MAX),
        args: cut(&ask.args, limit::ARGS_BYTES_MAX),
        tokens: ask.tokens,
        told_tokens: ask.told_tokens,
    };
    asks.iter().take(limit::ASKS_MAX).map(bounded).collect()
}

pub(crate) fn takes_turns(world: &World, ix: AgentIx) -> bool {
    world.turns_of(ix).is_some()
}

fn ask_model(draft: &mut Draft<'_>, ix: AgentIx, tokens: u64) {
    let Some(turns) = draft.turns_of(ix) else { return };
    let turns_max = turns.turns_max;
    let agent = draft.agent(ix);
    if agent.progress.turns >= turns_max {
        return agent::end(draft, ix, out_of_turns(draft.rules(), turns_max), None);
    }
    if wrap_up::instead_of_turn(draft, ix, tokens) {
        return;
    }
    let tokens = match fit(draft, ix, tokens) {
        Ok(Fitted::Tokens(tokens)) => tokens,
        // The turn follows when the summary has ended.
        Ok(Fitted::Later) => return,
        Err(exit) => return agent::end(draft, ix, exit, None),
    };
    match whole_window(draft, ix, tokens) {
        Ok(work) => {
            let work = telling_left(draft, ix, Work::Model(work));
            ask(draft, ix, work);
            let turns = draft.agents().living(ix).map_or(0, |agent| agent.progress.turns);
            if turns > 0 && turns.is_multiple_of(limit::CHECKPOINT_EVERY_TURNS) {
                draft.due(ix);
            }
        }
        Err(refusal) => {
            agent::end(
                draft,
                ix,
                Exit::failed(FailureCode::from(&refusal), refusal.text(draft.rules())),
                None,
            );
        }
    }
}

/// A turn that shows the agent's whole window, whose messages were counted as at most `counted` tokens.
fn whole_window(draft: &Draft<'_>, ix: AgentIx, counted: u64) -> Result<ModelCall, Refusal> {
    let (model, window) = (wrap_up::turn_model(draft, ix), &draft.agent(ix).progress.window);
    let input_tokens = window.bound_for(model, counted);
    let work = call::turn_work(draft, ix, model, input_tokens)?;
    Ok(ModelCall {
        counted_tokens: Some(counted).filter(|counted| *counted > input_tokens),
        estimate: window.is_estimated().then(|| window.used()),
        ..work
    })
}

const DIED: Reworded = Reworded::new(
    "the process died repeatedly during this call",
    "the process died again and again during this call",
);

fn out_of_turns(rules: u32, turns_max: u32) -> Exit {
    let message = format!(
        "no answer after {}, {}: raise `limits.max_steps`, or ask for less",
        turns_text(turns_max),
        ALL_ALLOWED.under(rules)
    );
    Exit::failed(FailureCode::MaxSteps, message)
}

/// If the turn reads results, adds what the agent has left.
fn telling_left(draft: &Draft<'_>, ix: AgentIx, mut work: Work) -> Work {
    let agent = draft.agent(ix);
    if let Work::Model(model) = &mut work
        && draft.facts_tokens(ix).bound() > 0
        && agent.progress.window.reads_results()
    {
        let left = draft.ledger().remaining(agent.account);
        model.left = Some(left).filter(|left| !left.bounded().is_empty()).map(Box::new);
    }
    work
}

fn turns_text(turns: u32) -> String {
    if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") }
}

fn ask(draft: &mut Draft<'_>, ix: AgentIx, work: Work) {
    let (call, agent) = (draft.calls().next_id(), draft.agent_id(ix).clone());
    draft.record(Event::CallAsked { call, agent, work });
    call::admit(draft, call, None);
}

/// The result of fitting a window.
enum Fitted {
    /// The tokens of the next packet.
    Tokens(u64),
    /// A summary of what is dropped comes first.
    Later,
}

/// Cuts a full window and returns the tokens of the next packet. If a summary replaces the cut, it is requested
/// first, once per cut.
fn fit(draft: &mut Draft<'_>, ix: AgentIx, tokens: u64) -> Result<Fitted, Exit> {
    let window = &draft.agent(ix).progress.window;
    if window.size().is_none() && window.images() == 0 {
        return Ok(Fitted::Tokens(tokens));
    }
    let (is_bound, before) = (window.size().is_some(), window.tokens());
    let size = window.room().unwrap_or(u64::MAX);
    let spec = draft.turns_of(ix).and_then(|turns| turns.window.clone()).unwrap_or_default();
    let thread = thread::slice(draft, ix);
    let bounds = Bounds { size, preset: spec.preset, images_max: spec.images, compact: spec.compact, thread };
    match window::trim(window, &bounds) {
        Ok(None) => {}
        Ok(Some(cut)) => {
            let left_out = window.dropped(&cut);
            let summary = match summary::telling(draft, ix, &cut, spec.compact) {
                Telling::Now(summary) => summary,
                Telling::After(work) => {
                    ask(draft, ix, work);
                    return Ok(Fitted::Later);
                }
            };
            let agent = draft.agent_id(ix).clone();
            draft.record(Event::ContextCut { agent, cut, left_out, summary, shortened: None });
        }
        Err(short) => {
            let [tokens, system, size] =
                [short.tokens, short.system, short.size].map(|tokens| window.corrected(tokens));
            let message = if draft.rules() >= 7 {
                format!(
                    "the window holds {size} tokens, but {tokens} cannot be dropped, {system} of them the agent's instructions and task: raise `window.size`, use a model with a larger context, or ask for less at once"
                )
            } else {
                format!(
                    "{tokens} tokens have to be in the window and {size} fit in, {system} of them what the agent is and has to do: raise `window.size`, use a model that takes more, or ask for less at once"
                )
            };
            return Err(Exit::failed(FailureCode::WindowTooSmall, message));
        }
    }
    let after = draft.agent(ix).progress.window.tokens();
    // Without a bound the whole context is shown, except for images that became placeholders.
    let without = || tokens.saturating_sub(before.saturating_sub(after));
    Ok(Fitted::Tokens(if is_bound { after } else { without() }))
}

/// The exit of an agent whose model call may not start because its time is up: the same as if the timer had fired
/// first.
fn late_exit(draft: &Draft<'_>, ix: AgentIx, outcome: &Outcome) -> Option<Exit> {
    match outcome {
        Outcome::Refused { refusal: Refusal::DeadlinePassed { agent, .. } } => {
            clock::too_late(draft, ix, agent)
        }
        _ => None,
    }
}

/// The exit of an agent whose model call failed.
fn failure(rules: u32, outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Failed { fault } => {
            let words = if fault.message.is_empty() { String::new() } else { format!(": {}", fault.message) };
            let remedy = if fault.kind == FaultKind::ContextTooLong && rules >= 5 {
                too_long::REMEDY.under(rules)
            } else {
                ""
            };
            let message = format!("the model call failed{words}{remedy}");
            Exit::failed(FailureCode::Model(fault.kind), message)
        }
        Outcome::Refused { refusal } => Exit::failed(FailureCode::from(refusal), refusal.text(rules)),
        Outcome::Lost => Exit::failed(FailureCode::ModelLost, DIED.under(rules)),
        Outcome::Cancelled
        | Outcome::Done { .. }
        | Outcome::Answered { .. }
        | Outcome::Approved
        | Outcome::Children { .. }
        | Outcome::Message { .. }
        | Outcome::NobodyLeft
        | Outcome::Expired { .. } => {
            Exit::failed(FailureCode::Model(FaultKind::Stopped), "the model call was stopped")
        }
    }
}
