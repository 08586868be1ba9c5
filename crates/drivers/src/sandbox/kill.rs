//! Ends every process below one.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::processes::children;

/// Kills every descendant as soon as it is found, and with it the group that it leads: a group is killed at once, also what
/// is just being forked in it. Another process may begin meanwhile, so this is called until there is none.
pub(super) fn kill_below(ancestor: Pid) {
    let mut found = children(ancestor);
    while let Some(pid) = found.pop() {
        let below = children(pid);
        // It may have ended, or lead no group.
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = kill_process(pid, Signal::KILL);
        found.extend(below);
    }
}
