//! Wrap-up: before an agent runs out of budget, turns or time, it gets one last call, without tools and within every
//! limit. The answer is its partial result.
//!
//! The call is the last turn that `max_steps` or the steps ceiling allows, replaces one that can never fit, or comes
//! shortly before the deadline. It sees what fits: at least the first message and the newest one from a person or agent.
//! The agent ends after it; the root's ceiling halts the tree instead, and a raise allows ordinary turns again.

pub(super) use crate::record::{WrapUpCall, WrapUpReason};
use crate::world::Call;

use super::{runtime_note, thread};
use crate::budget::{Amounts, Fit, Resource, Shortfall};
use crate::definition::{Refusal, WrapUp};
use crate::primitives::{AgentId, Body, CallId, ModelName, Reworded, limit};
use crate::record::{Cut, Event, Exit, FailureCode, ModelCall, Outcome, ToolAsk, Work};
use crate::rules::{Draft, agent, call};
use crate::window;
use crate::window::{Bounds, Window};
use crate::world::{AgentIx, AgentState, CallStage, World};

pub(super) fn is_on(world: &World, ix: AgentIx) -> bool {
    world.rules() >= 3 && world.turns_of(ix).is_some() && world.agent(ix).terms.wrap_up == WrapUp::On
}

pub(super) fn is_due(world: &World, ix: AgentIx) -> bool {
    due(world, ix).is_some()
}

/// Why an agent's next turn is its last. `None` if it is not, or if it already had its last call.
fn due(world: &World, ix: AgentIx) -> Option<WrapUpReason> {
    let (agent, turns_max) = (world.agent(ix), world.turns_of(ix).map(|turns| turns.turns_max)?);
    if !is_on(world, ix) || agent.progress.wrapped_up().is_some() {
        return None;
    }
    if agent.progress.is_time_short() {
        return Some(WrapUpReason::Deadline);
    }
    if turns_max >= 2 && agent.progress.turns + 1 == turns_max {
        return Some(WrapUpReason::MaxSteps);
    }
    last_step(world, ix)
}

/// Whether the next turn takes the last step of a ceiling. An agent with a single step takes it as an ordinary turn.
fn last_step(world: &World, ix: AgentIx) -> Option<WrapUpReason> {
    let account = world.agent(ix).account;
    let is_single = world.account_of(ix).terms.limit.get(Resource::Steps) == Some(1);
    // Most steps of a graph take one turn, and their answers are whole.
    let is_first_of_step = world.graphs().member(ix).is_some() && world.agent(ix).progress.turns == 0;
    if is_single || is_first_of_step || world.ledger().left(account).get(Resource::Steps) != Some(1) {
        return None;
    }
    match world.ledger().fit(account, &Amounts::ZERO.with(Resource::Steps, 2)) {
        Fit::Never(by, short) if short.resource == Resource::Steps => {
            Some(WrapUpReason::Ceiling { account: world.owner(by), short })
        }
        Fit::Never(..) | Fit::Yes | Fit::Wait(..) | Fit::Shut(_) => None,
    }
}

/// Makes an agent's next turn its last call, if it must be and fits. Returns whether it did.
pub(super) fn instead_of_turn(draft: &mut Draft<'_>, ix: AgentIx, tokens: u64) -> bool {
    let Some(reason) = due(draft, ix) else { return false };
    let model = draft.agent(ix).terms.model.clone();
    let Some(work) = last_call(draft, ix, &model, tokens, reason) else { return false };
    super::ask(draft, ix, work);
    true
}

/// Replaces a turn that can never fit by its agent's last call, if that fits. Returns whether it did.
pub(crate) fn replaces(draft: &mut Draft<'_>, id: CallId, refusal: &Refusal) -> bool {
    let (Some(call), Some((account, short))) = (draft.call(id), refusal.shortfall()) else { return false };
    let Work::Model(turn) = &call.work else { return false };
    let ix = call.agent;
    // A model call from outside may have others beside it, or no turns before it.
    let is_own = draft.agent(ix).open.as_slice() == [id];
    // A last call that waited while others used the budget is cut again.
    let is_over = draft.agent(ix).progress.wrapped_up().is_some() && turn.wrap_up.is_none();
    if !is_on(draft, ix) || !is_own || is_over {
        return false;
    }
    let reason = match &turn.wrap_up {
        Some(wrap_up) => wrap_up.reason.clone(),
        None => WrapUpReason::Ceiling { account: account.clone(), short: *short },
    };
    let tokens = draft.agent(ix).progress.tokens;
    let Some(work) = last_call(draft, ix, &turn.model, tokens, reason) else { return false };
    call::end(draft, id, Outcome::Refused { refusal: refusal.clone() });
    super::ask(draft, ix, work);
    true
}

/// The refusal of a root's turn that follows its last call: nothing is called before the ceiling is raised, even if the
/// turn would fit, with a cheaper model for example.
pub(crate) fn kept_back(draft: &Draft<'_>, id: CallId) -> Option<Refusal> {
    let call = draft.call(id).filter(|call| {
        call.work.is_turn() && call.work.wrap_up().is_none() && call.work.of_tool().is_none()
    })?;
    let ix = call.agent;
    let is_root = draft.agents().parent(ix).is_none();
    let agent = draft.agent(ix);
    let Some(WrapUpReason::Ceiling { account, short }) = agent.progress.wrapped_up() else { return None };
    let is_raised = || draft.account_of(ix).terms.limit.get(short.resource) != Some(short.limit);
    if draft.rules() < 6 || !is_root || is_raised() {
        return None;
    }
    let ask = call::first_attempt(draft.definition(), &call.work, draft.now());
    // The numbers of now, if it does not fit.
    let short = match draft.ledger().fit(agent.account, &ask) {
        Fit::Never(_, now) if now.resource == short.resource => now,
        Fit::Never(..) | Fit::Yes | Fit::Wait(..) | Fit::Shut(_) => *short,
    };
    Some(Refusal::Ceiling { account: account.clone(), short })
}

/// The model of an agent's next ordinary turn. After a last call in place of a fallback that did not fit, it is that
/// fallback.
pub(super) fn turn_model(world: &World, ix: AgentIx) -> &ModelName {
    let agent = world.agent(ix);
    let is_at_ceiling = matches!(agent.progress.wrapped_up(), Some(WrapUpReason::Ceiling { .. }));
    let refused = agent.progress.wrapped_up_model().filter(|_| is_at_ceiling && world.rules() >= 6);
    refused.unwrap_or(&agent.terms.model)
}

/// The last call of an agent whose whole packet has `tokens`. `None` if the budget does not cover the smallest one.
fn last_call(
    draft: &Draft<'_>,
    ix: AgentIx,
    model: &ModelName,
    tokens: u64,
    reason: WrapUpReason,
) -> Option<Work> {
    let cap = draft.turns_of(ix)?.output_cap_with(draft.definition().models.get(model)?);
    let least = cap.min(limit::WRAP_UP_OUTPUT_TOKENS_MIN);
    let mut outputs = [cap.min(limit::OUTPUT_TOKENS_SHRUNK), least].into_iter();
    let (input, cut) = outputs.find_map(|output| {
        let room = call::affordable_input(draft, ix, model, output)?;
        packet_within(draft, ix, model, tokens, room)
    })?;
    let plain = ModelCall::new(model.clone(), input.bound, cap);
    let output = call::affordable_output(draft, ix, &plain)?.min(cap);
    let call = call::model_work(draft, ix, model, input.bound, output).ok()?;
    let work = Work::Model(ModelCall {
        counted_tokens: Some(input.counted).filter(|counted| *counted > input.bound),
        estimate: input.estimate,
        wrap_up: Some(Box::new(WrapUpCall { reason, cut })),
        ..call
    });
    // One step must also be left.
    let ask = call::first_attempt(draft.definition(), &work, draft.now());
    let fits = matches!(draft.ledger().fit(draft.agent(ix).account, &ask), Fit::Yes | Fit::Wait(..));
    (fits && output >= least).then_some(work)
}

/// The input tokens of a last call.
struct LastInput {
    /// Upper bound for its model.
    bound: u64,
    /// Upper bound for any model.
    counted: u64,
    estimate: Option<u64>,
}

/// The last call's packet within `room`, and the cut for it. The window's own size also applies.
fn packet_within(
    world: &World,
    ix: AgentIx,
    model: &ModelName,
    tokens: u64,
    room: u64,
) -> Option<(LastInput, Option<Cut>)> {
    let mut window = world.agent(ix).progress.window.clone();
    let before = window.tokens();
    let whole = if window.size().is_some() { before } else { tokens };
    let note = limit::WRAP_UP_TOKENS;
    let room = room.checked_sub(note.bound())?;
    // It need not see all unread messages: only the first message and the newest one to the agent are protected.
    window.read();
    let own = window.room().map_or(u64::MAX, |size| size.saturating_sub(window.count(note).estimate()));
    let within = |measured: &Window, size: u64| {
        let cut = window::trim(measured, &bounds(world, ix, size)).ok()?;
        let mut kept = window.clone();
        cut.iter().for_each(|cut| kept.cut(cut));
        let counted = whole.saturating_sub(before.saturating_sub(kept.tokens()));
        let bound = if cut.is_some() { counted } else { window.bound_for(model, counted) };
        let estimate = kept.counted().estimate();
        let fits = bound <= room && estimate <= own;
        let with_note = |tokens: u64| tokens.saturating_add(note.bound());
        let estimate =
            window.is_estimated().then(|| window.corrected(estimate.saturating_add(note.estimate())));
        let input = LastInput { bound: with_note(bound), counted: with_note(counted), estimate };
        fits.then_some((input, cut))
    };
    let by_budget = room.saturating_add(before).saturating_sub(whole);
    if window.is_estimated() {
        // A budget is held by bounds, so that is how messages are cut for it.
        return within(&window, own).or_else(|| within(&window.by_bounds(), by_budget));
    }
    within(&window, by_budget.min(own))
}

pub(super) fn bounds(world: &World, ix: AgentIx, size: u64) -> Bounds {
    let spec = world.turns_of(ix).and_then(|turns| turns.window.clone()).unwrap_or_default();
    let thread = thread::slice(world, ix);
    Bounds { size, preset: spec.preset, images_max: spec.images, compact: spec.compact, thread }
}

const OUT_OF_TIME: Reworded = Reworded::new(
    "it ran out of time: this is as far as it got; give it more time",
    "its time was nearly up: this is as far as it got; give it more time",
);
const KEPT: Reworded = Reworded::new(
    " Your last answer is kept as the output so far: continue.",
    " What you answered last is kept as the output so far: go on.",
);
const MORE_TIME: Reworded = Reworded::new(" You have more time: continue.", " You have more time: go on.");

/// The last call has ended, with or without an answer: the agent ends too, and its parent gets its progress. At the
/// root's ceiling the tree halts: the ordinary turn that does not fit waits for a raise.
pub(super) fn over(draft: &mut Draft<'_>, ix: AgentIx, reason: WrapUpReason) {
    let exit = match reason {
        WrapUpReason::MaxSteps => super::out_of_turns(
            draft.rules(),
            draft.turns_of(ix).map(|turns| turns.turns_max).unwrap_or_default(),
        ),
        // A person gave it more time meanwhile.
        WrapUpReason::Deadline if !draft.agent(ix).progress.is_time_short() => {
            return super::ask_model(draft, ix, draft.agent(ix).progress.tokens);
        }
        WrapUpReason::Deadline => Exit::failed(FailureCode::Timeout, OUT_OF_TIME.under(draft.rules())),
        WrapUpReason::Ceiling { .. } if draft.agents().parent(ix).is_none() => {
            return super::ask_model(draft, ix, draft.agent(ix).progress.tokens);
        }
        WrapUpReason::Ceiling { account, short } => exhausted(draft, ix, account, short),
    };
    agent::end(draft, ix, exit, None);
}

/// The numbers of the call that did not fit, or current ones if those are from before the last call.
fn exhausted(world: &World, ix: AgentIx, account: AgentId, short: Shortfall) -> Exit {
    let agent = world.agent(ix);
    if let Some(Outcome::Refused { refusal }) = agent.progress.failed()
        && let Some((account, short)) = refusal.shortfall()
    {
        return Exit::Exhausted { account: account.clone(), short: *short };
    }
    match world.ledger().fit(agent.account, &Amounts::ZERO.with(Resource::Steps, 1)) {
        Fit::Never(by, now) if short.resource == Resource::Steps && now.resource == Resource::Steps => {
            Exit::Exhausted { account: world.owner(by), short: now }
        }
        Fit::Never(..) | Fit::Yes | Fit::Wait(..) | Fit::Shut(_) => Exit::Exhausted { account, short },
    }
}

/// Whether an agent gets a last call shortly before its time is up.
pub(crate) fn will_wrap_up(world: &World, ix: AgentIx) -> bool {
    is_on(world, ix) && !world.agent(ix).progress.is_time_short()
}

/// An agent's time is nearly over: what it waits for is stopped, and its next call is its last. A running turn may
/// finish, since its answer may be the final one.
pub(crate) fn time_is_short(draft: &mut Draft<'_>, ix: AgentIx) {
    let is_live = draft.agents().living(ix).is_some_and(|agent| matches!(agent.state, AgentState::Live));
    if !is_live || draft.agent(ix).progress.is_time_short() {
        return;
    }
    let agent = draft.agent_id(ix).clone();
    if draft.agent(ix).progress.wrapped_up().is_some() {
        return draft.record(Event::WrapUpStarted { agent, stops: false });
    }
    let is_thinking =
        draft.agent(ix).open.iter().filter_map(|id| draft.call(*id)).any(|call| {
            matches!(&call.work, Work::Model(work) if work.outside.is_none()) && call.is_running()
        });
    draft.record(Event::WrapUpStarted { agent, stops: !is_thinking });
    if !is_thinking {
        stop(draft, ix);
    }
}

/// Whether a turn that is lost is followed by its agent's last call, because time is short.
pub(crate) fn is_last_call_due(world: &World, id: CallId) -> bool {
    world.call(id).is_some_and(|call| {
        let is_own_turn = call.work.is_turn() && call.work.outside().is_none();
        is_own_turn && due(world, call.agent) == Some(WrapUpReason::Deadline)
    })
}

/// Drops an agent's waiting calls and stops its children. Its running calls are stopped by an effect.
fn stop(draft: &mut Draft<'_>, ix: AgentIx) {
    // A stopped child ends the call that spawned it.
    agent::drop_waiting(draft, ix, |work| matches!(work, Work::Child(_)));
    for child in draft.agents().children(ix).collect::<Vec<_>>() {
        let parent = draft.agent_id(ix);
        let reason = format!("the time of `{parent}` was nearly up");
        agent::end(draft, child, Exit::Cancelled { reason }, None);
    }
    draft.moved(ix);
}

/// Answers tool calls for which no time is left. Returns whether that was the case.
pub(super) fn instead_of_tools(draft: &mut Draft<'_>, ix: AgentIx, asks: &[ToolAsk]) -> bool {
    if !is_on(draft, ix) || !draft.agent(ix).progress.is_time_short() {
        return false;
    }
    for place in 0..asks.len().min(limit::ASKS_MAX) {
        let (agent, body) = (draft.agent_id(ix).clone(), Body::text("not called: your time is nearly up"));
        draft.record(Event::ToolAnswered { agent, ask: place as u32, body, is_error: true, value: None });
    }
    stop(draft, ix);
    true
}

/// The notices to agents that had their last call, or lost a child to a ceiling, when the ceiling of `ix` is raised.
pub(crate) fn raise_notes(world: &World, ix: AgentIx, add_ms: u64) -> Vec<(AgentIx, String)> {
    if world.rules() < 3 {
        return Vec::new();
    }
    let has_room = |ix: &AgentIx| {
        let agent = world.agent(*ix);
        matches!(agent.state, AgentState::Live)
            && world.turns_of(*ix).is_some()
            && agent.inbox.all().len() < limit::INBOX_MAX
    };
    let members = world.agents().subtree(ix).into_iter().filter(has_room);
    let has_time = |member| member == ix && add_ms > 0;
    members.filter_map(|member| Some((member, raise_note(world, member, has_time(member))?))).collect()
}

fn raise_note(world: &World, ix: AgentIx, has_time: bool) -> Option<String> {
    let lost = world.agents().lost(ix);
    let names: Vec<&str> =
        lost.iter().take(limit::LOST_NAMED_MAX).map(|child| world.agents().id(*child).as_str()).collect();
    let again = match (names.as_slice(), lost.len() - names.len()) {
        ([], _) => String::new(),
        (names, 0) => format!(" A ceiling stopped {}: such a task may be given again.", names.join(", ")),
        (names, more) => {
            format!(
                " A ceiling stopped {} and {more} more: such a task may be given again.",
                names.join(", ")
            )
        }
    };
    let go_on = match world.agent(ix).progress.wrapped_up() {
        Some(WrapUpReason::Ceiling { .. }) => KEPT.under(world.rules()),
        Some(WrapUpReason::Deadline) if has_time => MORE_TIME.under(world.rules()),
        Some(WrapUpReason::MaxSteps | WrapUpReason::Deadline) | None => "",
    };
    (!again.is_empty() || !go_on.is_empty()).then(|| format!("The budget was raised.{go_on}{again}"))
}

/// Delivers them. A waiting turn is requested again, so its agent reads them first.
pub(crate) fn tell_raised(draft: &mut Draft<'_>, notes: Vec<(AgentIx, String)>) {
    for (ix, text) in notes {
        runtime_note::send(draft, ix, text);
        call::wake_waits(draft, ix);
        if draft.halted().is_some() {
            continue;
        }
        let waits = |call: &Call| {
            let is_ordinary =
                call.work.is_turn() && call.work.wrap_up().is_none() && call.work.of_tool().is_none();
            is_ordinary && matches!(call.stage, CallStage::Waiting(_))
        };
        for id in draft.agent(ix).open.clone() {
            if draft.call(id).is_some_and(waits) {
                call::end(draft, id, Outcome::Cancelled);
            }
        }
    }
}
