//! Everything that descends from a guard. Only a guard may ask: it has no children but its program's.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open, pidfd_send_signal,
    wait,
};

/// What has ended below a guard since it was asked last.
pub(super) struct Reaped {
    /// How the program ended, if it did.
    pub(super) program: Option<WaitStatus>,
    /// Nothing descends from the guard any more: a subreaper without children has no descendants.
    pub(super) is_last: bool,
}

/// Takes the exit of every child that has ended: the program, and what was left to the guard.
pub(super) fn reap(program: Pid) -> io::Result<Reaped> {
    let mut ended = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == program => ended = Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(Reaped { program: ended, is_last: false }),
            Err(Errno::CHILD) => return Ok(Reaped { program: ended, is_last: true }),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Signals every descendant that can be found now. All are found before any is signalled: what a program starts because it
/// was interrupted is not interrupted itself. One that starts meanwhile may be missed.
pub(super) fn signal_all(signal: Signal) {
    let mut family = BTreeSet::from([number(getpid())]);
    let mut found = vec![getpid()];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(children(parent).into_iter().filter(|child| family.insert(number(*child))));
        at += 1;
    }
    found.into_iter().skip(1).for_each(|member| signal_member(member, signal, &family));
}

/// Signals a process if it belongs to the family. It is held by a handle before that is checked: its number may be given to
/// a stranger at any moment.
fn signal_member(pid: Pid, signal: Signal, family: &BTreeSet<i32>) {
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return,
        handle => handle,
    };
    if parent(pid).is_some_and(|parent| family.contains(&parent)) {
        // It may have ended meanwhile. Without handles, as on kernels before 5.3, its number must do.
        let _ = match handle {
            Ok(handle) => pidfd_send_signal(handle, signal),
            Err(_) => kill_process(pid, signal),
        };
    }
}

fn number(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

fn parent(pid: Pid) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{}/status", number(pid))).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// The children of a process, whichever of its threads started them.
pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{}/task", number(pid)));
    // It has ended: its children are the guard's now.
    let Ok(tasks) = tasks else { return Vec::new() };
    let listed = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    listed
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}
