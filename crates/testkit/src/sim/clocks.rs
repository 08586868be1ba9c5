//! The laws of clocks: an alarm exists exactly while a clock runs or a call waits for time, no clock ends early, and an
//! answer after its question's timeout does not count.

use std::collections::{BTreeMap, BTreeSet};

use spinney_kernel::primitives::{AgentId, CallId, Time, TimerId};
use spinney_kernel::record::{Alarm, ClockKind, Event, Exit, Outcome};
use spinney_kernel::world::{AgentClock, AgentIx, AgentState, TreeState, World};

use super::law::{Law, hold};

/// When an agent's time is up: by its own running clocks, or a timeout above it.
#[must_use]
pub fn deadline(world: &World, ix: AgentIx) -> Option<Time> {
    let at = |ix, kind| world.clock(ix, kind).and_then(AgentClock::end);
    let above = std::iter::once(ix).chain(world.agents().above(ix));
    let timeouts = above.filter_map(|ix| at(ix, ClockKind::Timeout));
    timeouts.chain(at(ix, ClockKind::Active)).min()
}

/// The alarms that the events of a tree set, counted independently of the world.
#[derive(Clone, Debug, Default)]
pub(super) struct Alarms {
    calls: BTreeMap<CallId, Alarm>,
    clocks: BTreeMap<(AgentId, ClockKind), Running>,
    /// Agents whose time is nearly up.
    short: BTreeSet<AgentId>,
}

/// A running clock: its alarm, and how long before its end that fires.
#[derive(Clone, Copy, Debug)]
struct Running {
    alarm: Alarm,
    early_ms: u64,
}

impl Alarms {
    /// Reads one event that was decided at a moment.
    pub(super) fn see(&mut self, event: &Event, now: Time) -> Law {
        match event {
            Event::AgentSpawned(spawned) => {
                let due = &spawned.due;
                self.set_clock(&spawned.agent, ClockKind::Timeout, due.alarm, due.early_ms);
            }
            Event::ClockSet { agent, clock, left_ms, early_ms, alarm } => {
                let in_step =
                    alarm.is_none_or(|alarm| alarm.at.after_ms(*early_ms) == now.after_ms(*left_ms));
                hold(in_step, || format!("{agent} has {left_ms} ms left at {now:?} and {alarm:?}"))?;
                self.set_clock(agent, *clock, *alarm, *early_ms);
            }
            Event::WrapUpStarted { agent, .. } => self.is_short(agent, now)?,
            Event::LimitRaised { agent, add_ms, .. } if *add_ms > 0 => {
                self.short.remove(agent);
            }
            Event::TreeAdjusted(adjusted) if adjusted.timeout_ms.is_some() => {
                self.short.remove(&adjusted.agent);
            }
            Event::AgentEnding { agent, exit, .. } | Event::AgentEnded { agent, exit, .. } => {
                self.ended(agent, exit, now)?;
            }
            Event::CallWaiting { call, alarm, .. } => self.set_call(*call, *alarm),
            Event::WaitStarted { call, alarm, .. } | Event::QuestionAsked { call, alarm, .. } => {
                self.set_call(*call, Some(*alarm));
            }
            Event::CallStarted { call, .. } => self.set_call(*call, None),
            Event::CallEnded { call, outcome, .. } => {
                self.answered(*call, outcome, now)?;
                self.set_call(*call, None);
            }
            Event::TreeBranched(branched) => {
                let clocks = self.clocks.values_mut().map(|clock| &mut clock.alarm);
                for alarm in self.calls.values_mut().chain(clocks) {
                    alarm.at = alarm.at.after_ms(branched.later_ms);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn set_call(&mut self, call: CallId, alarm: Option<Alarm>) {
        match alarm {
            Some(alarm) => self.calls.insert(call, alarm),
            None => self.calls.remove(&call),
        };
    }

    fn set_clock(&mut self, agent: &AgentId, clock: ClockKind, alarm: Option<Alarm>, early_ms: u64) {
        let key = (agent.clone(), clock);
        match alarm {
            Some(alarm) => self.clocks.insert(key, Running { alarm, early_ms }),
            None => self.clocks.remove(&key),
        };
    }

    /// An agent is short of time only if the early alarm of one of its clocks has fired.
    fn is_short(&mut self, agent: &AgentId, now: Time) -> Law {
        let has_come = |clock: &Running| clock.early_ms > 0 && clock.alarm.at <= now;
        let own = |kind: &ClockKind| self.clocks.get(&(agent.clone(), *kind)).is_some_and(has_come);
        hold(ClockKind::ALL.iter().any(own), || format!("{agent} wraps up early, at {now:?}"))?;
        self.short.insert(agent.clone());
        Ok(())
    }

    /// An agent that ends because of time had an expired running clock, or had its last call before.
    fn ended(&mut self, agent: &AgentId, exit: &Exit, now: Time) -> Law {
        // An ancestor's clock also counts.
        let is_up = self.short.contains(agent)
            || self.clocks.values().any(|clock| clock.alarm.at.after_ms(clock.early_ms) <= now);
        // A graph fails with the error of its step or group.
        let is_own = |message: &str| !message.starts_with("step `") && !message.starts_with("group `");
        let by_clock =
            matches!(exit, Exit::Failed { error } if error.code == "timeout" && is_own(&error.message));
        let is_first = ClockKind::ALL.iter().any(|kind| self.clocks.contains_key(&(agent.clone(), *kind)));
        hold(!by_clock || !is_first || is_up, || format!("the time of {agent} was up early, at {now:?}"))?;
        for kind in ClockKind::ALL {
            self.set_clock(agent, kind, None, 0);
        }
        Ok(())
    }

    /// A person's answer was in time, and a default was not too early.
    fn answered(&self, call: CallId, outcome: &Outcome, now: Time) -> Law {
        let is_up = self.calls.get(&call).is_some_and(|alarm| alarm.at <= now);
        match outcome {
            Outcome::Answered { is_default: false, .. } | Outcome::Approved => {
                hold(!is_up, || format!("{call} was answered after its time, at {now:?}"))
            }
            Outcome::Answered { is_default: true, .. } => {
                hold(is_up, || format!("{call} took its default before its time, at {now:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Compares the world with what the events said.
    pub(super) fn check(&self, world: &World) -> Law {
        let plain = |alarm: &Alarm| (alarm.timer, alarm.at);
        let expected: BTreeSet<(TimerId, Time)> =
            self.calls.values().chain(self.clocks.values().map(|clock| &clock.alarm)).map(plain).collect();
        let found: BTreeSet<(TimerId, Time)> = world.alarms().map(|alarm| plain(&alarm)).collect();
        hold(expected == found, || format!("alarms {found:?}, by the events {expected:?}"))?;
        let stands = stands(world);
        for ix in world.agents().all() {
            let Some(agent) = world.agents().living(ix) else { continue };
            if !matches!(agent.state, AgentState::Live) {
                continue;
            }
            let id = world.agents().id(ix);
            for kind in ClockKind::ALL {
                let Some(clock) = world.clock(ix, kind) else { continue };
                let own = self.clocks.get(&(id.clone(), kind)).map(|clock| clock.alarm);
                hold(clock.alarm == own, || format!("{kind:?} of {id}: {clock:?}, by the events {own:?}"))?;
                let runs = match kind {
                    ClockKind::Active => agent.running > 0,
                    ClockKind::Timeout => world.is_by_the_wall(ix) || !stands,
                };
                hold(clock.is_running() == runs, || format!("{kind:?} of {id} is {clock:?}, runs: {runs}"))?;
            }
        }
        Ok(())
    }
}

/// Whether the tree waits only for a person.
fn stands(world: &World) -> bool {
    let is_paused = world.agents().root().and_then(|root| world.agents().living(root));
    world.sealed().is_some()
        || world.calls().running() == 0
            && (is_paused.is_some_and(|root| root.paused)
                || world.is_suspended()
                || matches!(world.state(), TreeState::Waiting | TreeState::Paused | TreeState::Halted))
}
