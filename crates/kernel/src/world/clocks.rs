//! The clocks in the world: an index of running and paused timeouts, so no rule has to visit every agent.

use std::collections::BTreeSet;

use super::{Subject, TreeState, World};
use crate::primitives::AgentId;
use crate::record::{Alarm, ClockKind};
use crate::world::{AgentClock, AgentClocks, AgentIx};

/// Agents with a timeout that can pause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timeouts {
    running: BTreeSet<AgentIx>,
    still: BTreeSet<AgentIx>,
}

impl Timeouts {
    fn put(&mut self, ix: AgentIx, runs: bool) {
        self.remove(ix);
        if runs {
            self.running.insert(ix)
        } else {
            self.still.insert(ix)
        };
    }

    fn remove(&mut self, ix: AgentIx) {
        self.running.remove(&ix);
        self.still.remove(&ix);
    }
}

impl World {
    #[must_use]
    pub fn clock(&self, ix: AgentIx, kind: ClockKind) -> Option<&AgentClock> {
        self.agents.living(ix)?.clocks.as_deref()?.find(kind)
    }

    /// Whether its timeout never pauses.
    #[must_use]
    pub fn is_by_the_wall(&self, ix: AgentIx) -> bool {
        self.agents.living(ix).and_then(|agent| agent.clocks.as_deref()).is_some_and(|clocks| clocks.is_wall)
    }

    /// Whether timeouts are paused: only a person can make the tree continue.
    #[must_use]
    pub fn stands_still(&self) -> bool {
        let is_still = match self.state() {
            TreeState::Waiting
            | TreeState::Paused
            | TreeState::Halted
            | TreeState::Moved
            | TreeState::Copied => true,
            TreeState::Suspended => self.calls.running() == 0,
            TreeState::New | TreeState::Running | TreeState::Ended(_) => false,
        };
        // A call that sleeps before a retry will find the root paused when it wakes up.
        let is_paused = || {
            let root = self.agents.root().and_then(|root| self.agents.living(root));
            self.calls.running() == 0 && root.is_some_and(|root| root.paused)
        };
        is_still || is_paused()
    }

    /// Whether any agent has a timeout that can pause.
    pub(crate) fn has_timeouts(&self) -> bool {
        !(self.timeouts.running.is_empty() && self.timeouts.still.is_empty())
    }

    /// The agents whose timeout runs or is paused.
    pub(crate) fn timeouts_that(&self, run: bool) -> Vec<AgentIx> {
        let timeouts = if run { &self.timeouts.running } else { &self.timeouts.still };
        timeouts.iter().copied().collect()
    }

    /// Sets the clocks of a new agent.
    pub(super) fn wound(&mut self, ix: AgentIx) {
        let Some(clocks) = self.agent(ix).clocks.as_deref() else { return };
        let (alarm, is_wall) =
            (clocks.find(ClockKind::Timeout).and_then(|clock| clock.alarm), clocks.is_wall);
        self.set_timer(alarm, Subject::Clock(ix, ClockKind::Timeout));
        if alarm.is_some() && !is_wall {
            self.timeouts.put(ix, true);
        }
    }

    pub(super) fn clock_set(
        &mut self,
        id: &AgentId,
        kind: ClockKind,
        left_ms: u64,
        early_ms: u64,
        alarm: Option<Alarm>,
    ) {
        let ix = self.place(id);
        let clocks = self.agents.agent_mut(ix).clocks.as_deref_mut();
        let Some((clock, is_wall)) = clocks.and_then(|clocks| {
            let is_wall = clocks.is_wall;
            Some((clocks.find_mut(kind)?, is_wall))
        }) else {
            unreachable!("agent {id} has that clock")
        };
        let old = std::mem::replace(&mut clock.alarm, alarm);
        (clock.left_ms, clock.early_ms) = (left_ms, early_ms);
        self.clear_timer(old.map(|old| old.timer));
        self.set_timer(alarm, Subject::Clock(ix, kind));
        if kind == ClockKind::Timeout && !is_wall {
            self.timeouts.put(ix, alarm.is_some());
        }
    }

    pub(super) fn extended(&mut self, id: &AgentId, add_ms: u64) {
        if add_ms == 0 {
            return;
        }
        let ix = self.place(id);
        self.agents.agent_mut(ix).progress.set_time_short(false);
        for clock in self.agents.agent_mut(ix).clocks.iter_mut().flat_map(|clocks| clocks.all_mut()) {
            clock.given_ms = clock.given_ms.saturating_add(add_ms);
        }
    }

    /// Gives an agent another timeout, or its first. The next event sets its clock.
    pub(super) fn timeout_given(&mut self, id: &AgentId, given_ms: u64) {
        let ix = self.place(id);
        let agent = self.agents.agent_mut(ix);
        agent.progress.set_time_short(false);
        agent.clocks.get_or_insert_with(Box::default).set_timeout(given_ms);
    }

    /// Removes the clocks of an agent that is about to end.
    pub(super) fn clocks_gone(&mut self, ix: AgentIx) {
        let clocks: Option<Box<AgentClocks>> = self.agents.agent_mut(ix).clocks.take();
        for clock in
            clocks.into_iter().flat_map(|mut clocks| clocks.all_mut().map(|clock| *clock).collect::<Vec<_>>())
        {
            self.clear_timer(clock.alarm.map(|alarm| alarm.timer));
        }
        self.timeouts.remove(ix);
    }
}
