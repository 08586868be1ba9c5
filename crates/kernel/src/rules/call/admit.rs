//! Admission: the only place that decides whether a call may start, wait or is refused, when it arrives and whenever
//! something changed that calls wait for.

use super::cache::{self, CacheRole};
use super::fitted_cap::FittedCap;
use super::for_tool;
use super::{choose, cost, end};
use crate::record::{Outcome, WaitReason, Work};
use crate::world::{Call, CallStage};

use crate::budget::{AccountIx, Amounts, Fit, Price, Resource, Scan, Shortfall};
use crate::definition::Refusal;
use crate::primitives::{AgentId, CallId, ModelName, Time, limit};
use crate::record::{AccountShortfall, Alarm, Event, Exit};
use crate::rules::{Draft, agent, clock, program, turn};
use crate::world::{AgentIx, Halt};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    Started,
    Waiting(WaitReason),
    Refused(Refusal),
}

enum Verdict {
    Start(Amounts, CacheRole),
    Wait(Pause),
    Switch(ModelName, u64),
    Refuse(Refusal),
}

/// What a call waits for, with the time or the account if it depends on one.
#[derive(Clone, Copy)]
struct Pause {
    why: WaitReason,
    until: Option<Time>,
    blocked: Option<AccountIx>,
}

impl Pause {
    const fn on(why: WaitReason) -> Self {
        Self { why, until: None, blocked: None }
    }
}

/// Starts a call, lets it wait, or refuses it with all consequences. With a `scan`, only calls that the scan has
/// skipped go first; without one, all waiting calls do.
pub(crate) fn admit(draft: &mut Draft<'_>, id: CallId, scan: Option<&mut Scan>) -> Admitted {
    loop {
        match verdict(draft, id, scan.as_deref()) {
            Verdict::Start(held, role) => {
                let attempt = draft.call(id).map_or(0, |call| call.attempt) + 1;
                let at = is_dated(draft, id).then(|| draft.now());
                let leads = (role == CacheRole::Leads).then(|| draft.now());
                draft.record(Event::CallStarted { call: id, attempt, held, at, leads });
                return Admitted::Started;
            }
            Verdict::Wait(pause) => {
                wait(draft, id, pause);
                if let (WaitReason::Budget { ask }, Some(blocked), Some(scan)) =
                    (pause.why, pause.blocked, scan)
                {
                    scan.pass(blocked, &ask);
                }
                return Admitted::Waiting(pause.why);
            }
            Verdict::Switch(model, output_cap) => {
                draft.record(Event::CallSwitched { call: id, model, output_cap });
            }
            Verdict::Refuse(refusal) => return refuse(draft, id, refusal),
        }
    }
}

/// Reconsiders every call that waits for a change, in order, until nothing changes.
pub(crate) fn reconsider_waiting(draft: &mut Draft<'_>) {
    loop {
        // If the call that caused the halt is gone, the others may continue.
        if draft.halted().is_some_and(|halt| draft.call(halt.call).is_none() || is_lent_back(draft, halt)) {
            draft.record(Event::TreeUnhalted);
        }
        let mut scan = Scan::default();
        let mut last = CallId(0);
        let (mut again, mut has_skipped) = (false, false);
        while let Some(id) = draft.calls().startable_after(last) {
            if draft.calls().running() >= draft.limits().parallel_max {
                break;
            }
            last = id;
            match admit(draft, id, Some(&mut scan)) {
                // It may end agents and return what they were lent, so skipped calls may fit now.
                Admitted::Refused(_) => again = true,
                // What it holds may block a skipped call at another account, and leave its place to the calls between.
                Admitted::Started => again |= has_skipped && draft.rules() >= 5,
                Admitted::Waiting(why) => has_skipped |= matches!(why, WaitReason::Budget { .. }),
            }
        }
        if !again {
            return;
        }
    }
}

/// Parks every startable call of `ix` and below while the agent is paused.
pub(crate) fn park(draft: &mut Draft<'_>, ix: AgentIx) {
    hold_back(draft, ix, WaitReason::Paused);
}

/// Parks every startable call while no process runs the tree.
pub(crate) fn suspend(draft: &mut Draft<'_>) {
    if draft.is_suspended() {
        return;
    }
    draft.record(Event::TreeSuspended);
    if let Some(root) = draft.agents().root() {
        hold_back(draft, root, WaitReason::Suspended);
    }
}

fn hold_back(draft: &mut Draft<'_>, ix: AgentIx, until: WaitReason) {
    for member in draft.agents().subtree(ix) {
        for id in draft.agent(member).open.clone() {
            let Some(CallStage::Waiting(why)) = draft.call(id).map(|call| call.stage) else { continue };
            // A paused call waits for a person first, even if no process runs the tree.
            if matches!(
                why,
                WaitReason::Budget { .. }
                    | WaitReason::Ceiling
                    | WaitReason::Slot
                    | WaitReason::Rate
                    | WaitReason::Breaker
                    | WaitReason::Cache
                    | WaitReason::Suspended
            ) {
                wait(draft, id, Pause::on(until));
            }
        }
    }
}

fn verdict(draft: &Draft<'_>, id: CallId, scan: Option<&Scan>) -> Verdict {
    let Some(call) = draft.call(id) else { unreachable!("only open calls are admitted") };
    let ix = call.agent;
    let is_for_tool = call.work.of_tool().is_some();
    if is_for_tool && let Some(refusal) = for_tool::refused(draft, call) {
        return Verdict::Refuse(refusal);
    }
    if draft.is_paused(ix) {
        return Verdict::Wait(Pause::on(WaitReason::Paused));
    }
    if draft.is_suspended() {
        return Verdict::Wait(Pause::on(WaitReason::Suspended));
    }
    if draft.halted().is_some() {
        return Verdict::Wait(Pause::on(WaitReason::Halted));
    }
    if let Err(refusal) = clock::check_deadline(draft, ix) {
        return Verdict::Refuse(refusal);
    }
    if call.work.is_program() {
        return Verdict::Start(Amounts::ZERO, CacheRole::Alone);
    }
    if let Some(refusal) = turn::kept_back(draft, id) {
        return Verdict::Refuse(refusal);
    }
    if let Work::Model(work) = &call.work {
        // The tree may have got its first ceiling on cost while the call waited.
        if draft.rules() >= 6
            && let Err(refusal @ Refusal::Unpriced { .. }) = choose::check_model(draft, ix, &work.model)
        {
            return Verdict::Refuse(refusal);
        }
        if draft.is_broken(&work.model, draft.now()) {
            return match (choose::fallback(draft, id), draft.broken_until(&work.model)) {
                (Some((model, output_cap)), _) => Verdict::Switch(model, output_cap),
                (None, Some(until)) if may_wait_for_provider(call) => {
                    Verdict::Wait(Pause { until: Some(until), ..Pause::on(WaitReason::Breaker) })
                }
                (None, _) => Verdict::Refuse(Refusal::ModelUnavailable { model: work.model.clone() }),
            };
        }
        let not_before = call.past().and_then(|past| past.not_before).filter(|until| *until > draft.now());
        if let Some(until) = draft.limited_until(&work.model).max(not_before) {
            return Verdict::Wait(Pause { until: Some(until), ..Pause::on(WaitReason::Rate) });
        }
    }
    // Calls that wait for a slot get the next one in order; a scan has already visited the earlier ones.
    let taken = draft.calls().running() >= draft.limits().parallel_max;
    if !is_for_tool && (taken || (scan.is_none() && draft.calls().is_behind(id))) {
        return Verdict::Wait(Pause::on(WaitReason::Slot));
    }
    let fitted = FittedCap::new(draft, id);
    let ask = needed(draft, id, call);
    let at = draft.agent(ix).account;
    let fit = scan.map_or_else(|| draft.ledger().fit(at, &ask), |scan| scan.fit(draft.ledger(), at, &ask));
    match fit {
        Fit::Yes => {
            let share = fitted.and_then(|fitted| fitted.share(draft, id, scan));
            if let (Some(output_cap), Work::Model(work)) = (share, &call.work) {
                return Verdict::Switch(work.model.clone(), output_cap);
            }
            match cache::role(draft, id) {
                CacheRole::Waits(until) => {
                    Verdict::Wait(Pause { until: Some(until), ..Pause::on(WaitReason::Cache) })
                }
                role @ (CacheRole::Leads | CacheRole::Alone) => {
                    Verdict::Start(cost::worst_case(draft.definition(), call, draft.now()), role)
                }
            }
        }
        Fit::Wait(by, _) => {
            Verdict::Wait(Pause { blocked: Some(by), ..Pause::on(WaitReason::Budget { ask }) })
        }
        Fit::Shut(by) => {
            let (agent, stopped) = (draft.agent_id(ix).clone(), draft.owner(by));
            Verdict::Refuse(Refusal::AgentStopped { agent, stopped })
        }
        Fit::Never(by, short) => match choose::on_low(draft, id, &short) {
            Some((model, output_cap)) => Verdict::Switch(model, output_cap),
            None => Verdict::Refuse(Refusal::Ceiling { account: draft.owner(by), short }),
        },
    }
}

/// The amounts that a call needs to start.
fn needed(draft: &Draft<'_>, id: CallId, call: &Call) -> Amounts {
    match FittedCap::new(draft, id) {
        Some(fitted) => fitted.ask(draft),
        None => cost::worst_case(draft.definition(), call, draft.now()),
    }
}

/// Whether a call waits on while its provider is down.
fn may_wait_for_provider(call: &Call) -> bool {
    call.past().map_or(0, |past| past.breaker_waits) < limit::BREAKER_WAITS_MAX
}

/// Whether a call's cost depends on when it starts.
fn is_dated(draft: &Draft<'_>, id: CallId) -> bool {
    let Some(Call { work: Work::Model(work), .. }) = draft.call(id) else { return false };
    draft.definition().price(&work.model).is_some_and(Price::is_dated)
}

/// Records that a call waits, unless it already waits for the same reason.
fn wait(draft: &mut Draft<'_>, id: CallId, pause: Pause) {
    let Pause { why, until, blocked } = pause;
    let same = |call: &Call| {
        // A call that waits for time is reconsidered when its alarm fires, even if that turns out too early.
        let alarm = call.timer.and_then(|timer| draft.subject(timer)).map(|(at, _)| at);
        let asleep = until.is_none() || alarm.is_some_and(|at| at > draft.now());
        let line = draft.ledger().line_of(id.0).map(|waiter| waiter.blocked);
        // A call at a ceiling is not in line, and the account that is named first stays.
        let is_same = line == blocked || why == WaitReason::Ceiling;
        call.stage == CallStage::Waiting(why) && asleep && is_same
    };
    if draft.call(id).is_some_and(same) {
        return;
    }
    let alarm = until.map(|at| Alarm { timer: draft.next_timer(), at });
    let account = blocked.map(|by| draft.owner(by));
    draft.record(Event::CallWaiting { call: id, why, account, alarm });
}

/// Ends a call that must not run. A turn that no ceiling allows ends its agent or halts the tree; without a summary
/// an agent continues.
fn refuse(draft: &mut Draft<'_>, id: CallId, refusal: Refusal) -> Admitted {
    let Some(call) = draft.call(id) else { unreachable!("only open calls are refused") };
    let (ix, is_of_tool) = (call.agent, call.work.of_tool().is_some());
    let is_turn = call.work.is_turn() && !is_of_tool;
    if call.work.is_program() {
        program::refused(draft, id, &refusal);
        return Admitted::Refused(refusal);
    }
    let fault = call.past().and_then(|past| past.fault.clone());
    if let Some(fault) = fault.filter(|_| keeps_fault(draft.rules(), is_turn, &refusal)) {
        end(draft, id, Outcome::Failed { fault });
        return Admitted::Refused(refusal);
    }
    // Lent amounts return when the borrower ends, so they are not a reason to give up.
    let gone = |short: &Shortfall| {
        let ceiling = short.limit.saturating_sub(short.reserve);
        short.spent >= ceiling || short.spent + short.asked > ceiling
    };
    let is_outside = call.work.outside().is_some() && !is_of_tool;
    // Only the root's ceiling halts a tree with agents that are programs: below it, the one that asks waits.
    if is_outside
        && program::of(draft, ix).is_some()
        && let Some((account, short)) = refusal.shortfall()
        && !(gone(short) && halts_tree(draft, ix, account, short))
    {
        return wait_at_ceiling(draft, id, account);
    }
    match refusal.shortfall().filter(|(_, short)| is_turn && gone(short)) {
        Some((account, short)) if is_outside => {
            let (account, short) = (account.clone(), *short);
            return halt(draft, id, ix, account, short);
        }
        Some((account, short)) => {
            let (account, short) = (account.clone(), *short);
            let halts = halts_tree(draft, ix, &account, &short);
            // A call below the root that halts the tree only waits; every other agent gets a last call before it ends
            // or halts.
            if (!halts || draft.agents().parent(ix).is_none()) && turn::replaces(draft, id, &refusal) {
                return Admitted::Refused(refusal);
            }
            if draft.call(id).is_some_and(|call| call.work.wrap_up().is_some()) {
                end(draft, id, Outcome::Refused { refusal: refusal.clone() });
                return Admitted::Refused(refusal);
            }
            if halts {
                return halt(draft, id, ix, account, short);
            }
            end(draft, id, Outcome::Refused { refusal: refusal.clone() });
            agent::end(draft, ix, Exit::Exhausted { account, short }, None);
        }
        None => end(draft, id, Outcome::Refused { refusal: refusal.clone() }),
    }
    Admitted::Refused(refusal)
}

/// Whether a retry that is refused ends its call with the fault of the attempt before it. From rules 6 on a turn that
/// does not fit is refused like any other, so its ceiling is named and can be raised, and so is a retry that comes
/// too late or whose model needs a price by now. A tree without retries left still reports what went wrong.
fn keeps_fault(rules: u32, is_turn: bool, refusal: &Refusal) -> bool {
    match refusal {
        _ if rules < 6 => true,
        Refusal::DeadlinePassed { .. } | Refusal::Unpriced { .. } => false,
        Refusal::Ceiling { short, .. } => !is_turn || short.resource == Resource::Retries,
        _ => true,
    }
}

/// Nothing new starts until the ceiling of `account` is raised or the call is given up.
fn halt(draft: &mut Draft<'_>, id: CallId, ix: AgentIx, account: AgentId, short: Shortfall) -> Admitted {
    let agent = draft.agent_id(ix).clone();
    let also = also_lacks(draft, id, &account, &short);
    draft.record(Event::TreeHalted { agent, call: id, account, short, also });
    wait(draft, id, Pause::on(WaitReason::Halted));
    Admitted::Waiting(WaitReason::Halted)
}

/// Only this call waits, until the ceiling of `account` is raised or the call is given up. It is not in line, so others
/// pass it.
fn wait_at_ceiling(draft: &mut Draft<'_>, id: CallId, account: &AgentId) -> Admitted {
    let at = draft.agents().find(account).map(|by| draft.agent(by).account);
    wait(draft, id, Pause { blocked: at, ..Pause::on(WaitReason::Ceiling) });
    Admitted::Waiting(WaitReason::Ceiling)
}

/// How a call ends that its caller gives up before it starts. One that waits at a ceiling says at which: one of a program that
/// is an agent of the tree waits there for its own and every ceiling above, and the root's halts the tree.
pub(crate) fn given_up(draft: &Draft<'_>, id: CallId) -> Outcome {
    let Some(call) = draft.call(id) else { return Outcome::Cancelled };
    match call.stage {
        CallStage::Waiting(WaitReason::Ceiling) => {}
        CallStage::Waiting(WaitReason::Halted) if program::of(draft, call.agent).is_some() => {}
        _ => return Outcome::Cancelled,
    }
    let at = draft.agent(call.agent).account;
    match draft.ledger().fit(at, &needed(draft, id, call)) {
        Fit::Never(by, short) => {
            Outcome::Refused { refusal: Refusal::Ceiling { account: draft.owner(by), short } }
        }
        Fit::Yes | Fit::Wait(..) | Fit::Shut(_) => Outcome::Cancelled,
    }
}

/// Whether what the halted call lacked has come back from a child that ended.
fn is_lent_back(draft: &Draft<'_>, halt: &Halt) -> bool {
    let Some(call) = draft.call(halt.call).filter(|_| draft.rules() >= 6) else { return false };
    let Some(by) = draft.agents().find(&halt.account) else { return false };
    let lent = draft.ledger().account(draft.agent(by).account).lent.get(halt.short.resource);
    let fit = || draft.ledger().fit(draft.agent(call.agent).account, &needed(draft, halt.call, call));
    lent < halt.short.lent && matches!(fit(), Fit::Yes | Fit::Wait(..))
}

/// What a call lacks beside `short`: a person raises everything at once.
fn also_lacks(draft: &Draft<'_>, id: CallId, account: &AgentId, short: &Shortfall) -> Vec<AccountShortfall> {
    let Some(call) = draft.call(id).filter(|_| draft.rules() >= 6) else { return Vec::new() };
    let ask = needed(draft, id, call);
    let all = draft.ledger().shortfalls(draft.agent(call.agent).account, &ask);
    let all = all.into_iter().map(|(by, short)| AccountShortfall { account: draft.owner(by), short });
    all.filter(|other| (&other.account, other.short.resource) != (account, short.resource)).collect()
}

/// The root's ceiling halts the tree, unless the root's reserve is the reason, or the agent asked for more than there
/// ever was: then the agent ends and the others continue.
fn halts_tree(draft: &Draft<'_>, ix: AgentIx, account: &AgentId, short: &Shortfall) -> bool {
    let root = draft.agents().root();
    let is_root = |ix| Some(ix) == root;
    draft.agents().find(account).is_some_and(is_root)
        && (is_root(ix) || (short.reserve == 0 && short.asked <= short.limit))
}
