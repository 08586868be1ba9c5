//! A process and everything below it, held by handles: for tests that say what must not outlive it.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Handles of processes that were alive when they were opened.
#[derive(Debug)]
pub struct HeldProcesses(Vec<OwnedFd>);

impl HeldProcesses {
    /// Those that are alive.
    #[must_use]
    pub fn new(pids: &[u32]) -> Self {
        let open = |pid: &u32| pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok();
        Self(pids.iter().filter_map(open).collect())
    }

    /// Their number.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether all of them end within a second.
    #[must_use]
    pub fn have_ended(&self) -> bool {
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        // A signal, such as that of another child's end, interrupts a poll.
        let has_ended = |process: &OwnedFd| {
            retry_on_intr(|| poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&second)))
        };
        self.0.iter().all(|process| has_ended(process) == Ok(1))
    }
}

/// The processes below one, each after its parent.
#[must_use]
pub fn processes_below(ancestor: u32) -> Vec<u32> {
    let mut found = vec![ancestor];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let lists: Vec<String> =
            tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok()).collect();
        found.extend(
            lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|pid| pid.parse::<u32>().ok()),
        );
        at += 1;
    }
    found.split_off(1)
}
