//! A box that stands still while it is measured: what grows as fast as it is counted would be far past its limit before the
//! count ends.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Processes of a box that are stopped until this is dropped, unless it is kept.
pub(super) struct Pause(Vec<Pid>);

impl Pause {
    /// Stops these, apart from what is stopped already. Processes that a box makes wait for the guard, so none is missed.
    pub(super) fn begin(processes: impl Iterator<Item = Pid>) -> Self {
        let running = processes.filter(|pid| !is_stopped(*pid));
        Self(running.filter(|pid| kill_process(*pid, Signal::STOP).is_ok()).collect())
    }

    /// Leaves them stopped. They can be killed.
    pub(super) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        for pid in &self.0 {
            // One that was killed meanwhile has ended.
            let _ = kill_process(*pid, Signal::CONT);
        }
    }
}

/// By a signal, or by what traces it.
fn is_stopped(pid: Pid) -> bool {
    let line = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    line.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['T', 't']))
}
