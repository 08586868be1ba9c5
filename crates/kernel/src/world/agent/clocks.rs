//! The state of an agent's clocks: its timeout and its active time. `clock.rs` in the rules decides when they run and
//! pause.

pub(super) use crate::record::ClockKind;

use crate::primitives::Time;
use crate::record::{Alarm, Due};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentClock {
    /// All time it was given, including additions.
    pub given_ms: u64,
    /// What was left when it last started or stopped.
    pub left_ms: u64,
    /// Set while it runs.
    pub alarm: Option<Alarm>,
    /// How long before the end the alarm fires, so the agent can wrap up.
    pub early_ms: u64,
}

impl AgentClock {
    const fn new(given_ms: u64, alarm: Option<Alarm>, early_ms: u64) -> Self {
        Self { given_ms, left_ms: given_ms, alarm, early_ms }
    }

    /// `None` if it does not run.
    #[must_use]
    pub fn end(&self) -> Option<Time> {
        self.alarm.map(|alarm| alarm.at.after_ms(self.early_ms))
    }

    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.alarm.is_some()
    }

    /// What is left at `now`. A time before its start counts as its start.
    #[must_use]
    pub fn left_at(&self, now: Time) -> u64 {
        match self.end() {
            Some(end) => end.0.saturating_sub(now.0).min(self.left_ms),
            None => self.left_ms,
        }
    }

    /// When it ran out, if it runs and that is in the past.
    pub(crate) fn passed(&self, now: Time) -> Option<Time> {
        self.end().filter(|end| *end <= now)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentClocks {
    timeout: Option<AgentClock>,
    active: Option<AgentClock>,
    /// Whether its timeout never pauses.
    pub(crate) is_wall: bool,
}

impl AgentClocks {
    /// The clocks of a new agent. Rules 2 had only deadlines, which never pause.
    pub(crate) fn from_due(due: &Due) -> Option<Box<Self>> {
        let Due { alarm, early_ms, timeout_ms, wall, active_ms, .. } = *due;
        if alarm.is_none() && active_ms.is_none() {
            return None;
        }
        Some(Box::new(Self {
            timeout: alarm.map(|alarm| AgentClock::new(timeout_ms.unwrap_or(0), Some(alarm), early_ms)),
            active: active_ms.map(|ms| AgentClock::new(ms, None, 0)),
            is_wall: wall || timeout_ms.is_none(),
        }))
    }

    /// A timeout without one does not run until its clock is set.
    pub(crate) fn set_timeout(&mut self, given_ms: u64) {
        // Without a timeout the other clock says nothing about it.
        self.is_wall &= self.timeout.is_some();
        self.timeout.get_or_insert_with(|| AgentClock::new(given_ms, None, 0)).given_ms = given_ms;
    }

    pub(crate) const fn find(&self, kind: ClockKind) -> Option<&AgentClock> {
        match kind {
            ClockKind::Timeout => self.timeout.as_ref(),
            ClockKind::Active => self.active.as_ref(),
        }
    }

    pub(crate) const fn find_mut(&mut self, kind: ClockKind) -> Option<&mut AgentClock> {
        match kind {
            ClockKind::Timeout => self.timeout.as_mut(),
            ClockKind::Active => self.active.as_mut(),
        }
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut AgentClock> {
        [&mut self.timeout, &mut self.active].into_iter().flatten()
    }
}
