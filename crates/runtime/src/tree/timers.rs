//! The timers of one tree: which are due, and when to check next. One sleep serves them all.

use std::collections::BTreeSet;

use spinney_kernel::primitives::{Time, TimerId};
use spinney_kernel::record::Alarm;

use crate::clock::Nap;

/// Every timer that was set and has not fired. A timer whose subject is gone has no effect, so none is removed.
pub(super) struct Timers {
    set: BTreeSet<(Time, TimerId)>,
    nap: Nap,
    until: Option<Time>,
}

impl Timers {
    pub(super) fn new() -> Self {
        Self { set: BTreeSet::new(), nap: Nap::new(), until: None }
    }

    pub(super) fn set(&mut self, alarm: Alarm) {
        self.set.insert((alarm.at, alarm.timer));
    }

    /// Drops timers whose subject is gone, if there are many.
    pub(super) fn prune(&mut self, pending: impl Iterator<Item = Alarm>, most: usize) {
        if self.set.len() > most {
            self.set = pending.map(|alarm| (alarm.at, alarm.timer)).collect();
        }
    }

    pub(super) fn due(&mut self, now: Time) -> Option<TimerId> {
        let first = self.set.first().copied().filter(|(at, _)| *at <= now)?;
        self.set.remove(&first);
        Some(first.1)
    }

    /// Waits until the first one is due; forever if there is none.
    pub(super) async fn next(&mut self, ms_until: impl Fn(Time) -> u64) {
        let Some((at, _)) = self.set.first().copied() else { return std::future::pending().await };
        if self.until != Some(at) {
            self.nap.set(ms_until(at));
            self.until = Some(at);
        }
        self.nap.over().await;
        self.until = None;
    }
}
