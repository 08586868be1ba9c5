//! When agents' clocks run, and what happens when their time is up.
//!
//! Active time runs while one of the agent's own models or tools runs. A timeout pauses while the tree waits only for
//! a person, and while no process runs the tree; a wall timeout never pauses. Each start and stop is an event with the
//! time left and the new alarm, so applying it needs no clock. Trees of older rules have fixed deadlines.

use crate::definition::{BudgetSpec, Refusal, Role, WrapUp};
use crate::primitives::{AgentId, Millis, Time, limit};
use crate::record::{Alarm, ClockKind, Due, Event, Exit, FailureCode};
use crate::rules::{Draft, agent, turn};
use crate::world::{AgentClock, AgentIx, AgentState, World};

/// Whether clocks can pause under these rules.
pub(crate) const fn are_kept(rules: u32) -> bool {
    rules >= 3
}

/// The clocks of a new agent. Its timeout runs from its spawn, its active time from its first call.
pub(crate) fn of_newborn(
    world: &World,
    now: Time,
    role: &Role,
    budget: &BudgetSpec,
    active_ms: Option<u64>,
) -> Due {
    let Some(timeout_ms) = budget.timeout_ms else { return Due { active_ms, ..Due::default() } };
    let is_wrapped_up = role.turns.is_some() && budget.wrap_up.unwrap_or_default() == WrapUp::On;
    let early_ms = if is_wrapped_up { early_ms(timeout_ms) } else { 0 };
    let alarm = Alarm { timer: world.next_timer(), at: now.after_ms(timeout_ms - early_ms) };
    let (timeout_ms, wall) = (Some(timeout_ms), budget.timeout_wall);
    Due { deadline: None, alarm: Some(alarm), early_ms, timeout_ms, wall, active_ms }
}

/// The clocks of an agent that stands for a graph or a group: only its timeout.
pub(crate) fn of_group(world: &World, now: Time, budget: &BudgetSpec) -> Due {
    let Some(timeout_ms) = budget.timeout_ms else { return Due::default() };
    let alarm = Alarm { timer: world.next_timer(), at: now.after_ms(timeout_ms) };
    let (timeout_ms, wall) = (Some(timeout_ms), budget.timeout_wall);
    Due { alarm: Some(alarm), timeout_ms, wall, ..Due::default() }
}

/// How long before the end an agent with this much time starts to wrap up; 0 if it has little.
pub(crate) fn early_ms(given_ms: u64) -> u64 {
    if given_ms < limit::WRAP_UP_TIMEOUT_MS_MIN { 0 } else { (given_ms / 10).min(limit::WRAP_UP_MS_MAX) }
}

/// Starts and stops the clocks that this decision affects.
pub(crate) fn follow(draft: &mut Draft<'_>) {
    let mut ran = draft.take_ran();
    if !are_kept(draft.rules()) || draft.is_over() {
        return;
    }
    ran.sort_unstable();
    ran.dedup();
    for ix in ran {
        let Some(agent) = draft.agents().living(ix).filter(|agent| matches!(agent.state, AgentState::Live))
        else {
            continue;
        };
        let runs = agent.running > 0;
        if draft.clock(ix, ClockKind::Active).is_some_and(|clock| clock.is_running() != runs) {
            set(draft, ix, ClockKind::Active, runs);
        }
    }
    if draft.has_timeouts() {
        let runs = !draft.stands_still();
        for ix in draft.timeouts_that(!runs) {
            set(draft, ix, ClockKind::Timeout, runs);
        }
    }
}

fn set(draft: &mut Draft<'_>, ix: AgentIx, clock: ClockKind, runs: bool) {
    let left_ms = draft.clock(ix, clock).map_or(0, |found| found.left_at(draft.now()));
    record(draft, ix, clock, left_ms, runs);
}

fn record(draft: &mut Draft<'_>, ix: AgentIx, clock: ClockKind, left_ms: u64, runs: bool) {
    let wraps_up = runs && turn::will_wrap_up(draft, ix);
    let given_ms = draft.clock(ix, clock).map_or(0, |found| found.given_ms);
    let early_ms = if wraps_up { early_ms(given_ms).min(left_ms) } else { 0 };
    let at = draft.now().after_ms(left_ms - early_ms);
    let alarm = runs.then(|| Alarm { timer: draft.next_timer(), at });
    let agent = draft.agent_id(ix).clone();
    draft.record(Event::ClockSet { agent, clock, left_ms, early_ms, alarm });
}

/// Gives clocks back what they counted since `since`: no process ran the tree. Before rules 6 timeouts ran on.
pub(crate) fn recount(draft: &mut Draft<'_>, since: Time) {
    if !are_kept(draft.rules()) {
        return;
    }
    let agents: Vec<AgentIx> = draft.agents().all().collect();
    for ix in agents {
        for kind in ClockKind::ALL {
            let needs_process = match kind {
                ClockKind::Active => true,
                ClockKind::Timeout => draft.rules() >= 6 && !draft.is_by_the_wall(ix),
            };
            let running = |clock: &&AgentClock| needs_process && clock.is_running();
            let Some(clock) = draft.clock(ix, kind).filter(running) else { continue };
            let left_ms = clock.left_at(since);
            if left_ms > clock.left_at(draft.now()) {
                record(draft, ix, kind, left_ms, true);
            }
        }
    }
}

/// The clocks that a person can extend.
pub(crate) fn extendable(draft: &Draft<'_>, ix: AgentIx) -> Vec<ClockKind> {
    let has = |kind: &ClockKind| are_kept(draft.rules()) && draft.clock(ix, *kind).is_some();
    ClockKind::ALL.into_iter().filter(has).collect()
}

pub(crate) fn extend(draft: &mut Draft<'_>, ix: AgentIx, kind: ClockKind, add_ms: u64) {
    let Some(clock) = draft.clock(ix, kind) else { return };
    let (left_ms, runs) = (clock.left_at(draft.now()).saturating_add(add_ms), clock.is_running());
    record(draft, ix, kind, left_ms, runs);
}

/// The time that is left of a timeout of `ms` in all. Refused if as much is used.
pub(crate) fn left_of(draft: &Draft<'_>, ix: AgentIx, ms: u64) -> Result<u64, Refusal> {
    if ms == 0 || ms > limit::TIMEOUT_MS_MAX || !are_kept(draft.rules()) {
        return Err(Refusal::BadTimeout { ms, ms_max: limit::TIMEOUT_MS_MAX });
    }
    let clock = draft.clock(ix, ClockKind::Timeout);
    let used_ms = clock.map_or(0, |clock| clock.given_ms.saturating_sub(clock.left_at(draft.now())));
    match ms.saturating_sub(used_ms) {
        0 => Err(Refusal::TimeoutBelowUse { agent: draft.agent_id(ix).clone(), ms, used_ms }),
        left_ms => Ok(left_ms),
    }
}

/// Sets a timeout that was changed or is new.
pub(crate) fn begin(draft: &mut Draft<'_>, ix: AgentIx, left_ms: u64) {
    let runs = draft.is_by_the_wall(ix) || !draft.stands_still();
    record(draft, ix, ClockKind::Timeout, left_ms, runs);
}

/// A clock's alarm fired: the agent's time is nearly over, or over.
pub(crate) fn rang(draft: &mut Draft<'_>, ix: AgentIx, kind: ClockKind) {
    // If no process ran the tree, the end may have come as well.
    if turn::time_is_up(draft, ix) {
        return;
    }
    let is_over = |clock: &AgentClock| draft.rules() >= 6 && clock.passed(draft.now()).is_some();
    if draft.clock(ix, kind).is_none_or(|clock| clock.early_ms == 0 || is_over(clock)) {
        return time_is_up(draft, ix, kind);
    }
    turn::time_is_short(draft, ix);
    // Sets the same clock again, for the end.
    if draft.clock(ix, kind).is_some() {
        set(draft, ix, kind, true);
    }
}

fn time_is_up(draft: &mut Draft<'_>, ix: AgentIx, kind: ClockKind) {
    let exit = if are_kept(draft.rules()) {
        let given_ms = draft.clock(ix, kind).map_or(0, |clock| clock.given_ms);
        up("it", kind, given_ms)
    } else {
        Exit::failed(FailureCode::Timeout, "the deadline passed")
    };
    agent::end(draft, ix, exit, None);
}

/// The exit of an agent that may not start anything because the time of `late` is up: its own, or that of an ancestor
/// whose timer is not decided yet.
pub(crate) fn too_late(draft: &Draft<'_>, ix: AgentIx, late: &AgentId) -> Option<Exit> {
    let of = draft.agents().find(late).filter(|_| are_kept(draft.rules()))?;
    let passed =
        |kind: &ClockKind| draft.clock(of, *kind).is_some_and(|clock| clock.passed(draft.now()).is_some());
    let kind = ClockKind::ALL.into_iter().find(passed)?;
    let given_ms = draft.clock(of, kind)?.given_ms;
    let who = if of == ix { "it".to_owned() } else { format!("`{late}`") };
    Some(up(&who, kind, given_ms))
}

fn up(who: &str, kind: ClockKind, given_ms: u64) -> Exit {
    let given = Millis(given_ms);
    let message = match kind {
        ClockKind::Timeout => format!("{who} took longer than its timeout of {given}"),
        ClockKind::Active => format!("{who} worked longer than its {given} of active time"),
    };
    Exit::failed(FailureCode::Timeout, message)
}

/// Refuses work for an agent whose time is up.
pub(crate) fn check_deadline(draft: &Draft<'_>, ix: AgentIx) -> Result<(), Refusal> {
    let passed = |ix: AgentIx, kind| draft.clock(ix, kind).and_then(|clock| clock.passed(draft.now()));
    let (late, deadline) = if are_kept(draft.rules()) {
        let mut path = std::iter::once(ix).chain(draft.agents().above(ix));
        let timeout = path.find_map(|ix| Some((ix, passed(ix, ClockKind::Timeout)?)));
        let active = || Some((ix, passed(ix, ClockKind::Active)?));
        match timeout.or_else(active) {
            Some(late) => late,
            None => return Ok(()),
        }
    } else {
        match draft.agent(ix).terms.deadline.filter(|deadline| *deadline <= draft.now()) {
            Some(deadline) => (ix, deadline),
            None => return Ok(()),
        }
    };
    let (agent, late_ms) = (draft.agent_id(late).clone(), draft.now().0 - deadline.0);
    Err(Refusal::DeadlinePassed { agent, deadline, late_ms })
}
