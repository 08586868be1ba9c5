//! Processes: how they end, how they are ended, and handles that stay theirs.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::errno::Errno;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerPidfd;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::UnixStream;

/// The signal of an interrupt.
pub(crate) const INTERRUPT: i32 = 2;

/// The signal that ended a program.
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// The status of a program that ended with this code.
pub(crate) fn exited_with(code: u8) -> ExitStatus {
    ExitStatus::from_raw(i32::from(code) << 8)
}

/// The status of a program that this signal ended.
pub(crate) fn ended_by(signal: i32) -> ExitStatus {
    ExitStatus::from_raw(signal)
}

/// Kills a program that was started as the first of a process group, with all of the group. It may have ended already.
pub(crate) fn kill_group(first: u32) {
    if let Some(group) = i32::try_from(first).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// A process that keeps its handle when its number is given to another one.
#[derive(Debug)]
pub(crate) struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    /// The process at the other end of a socket. None on a kernel that does not say.
    pub(crate) fn from_peer(stream: &UnixStream) -> io::Result<Option<Self>> {
        match getsockopt(stream, PeerPidfd) {
            Ok(handle) => Ok(Some(Self(handle))),
            Err(Errno::ENOPROTOOPT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Its number. None if it has ended, or if it is in a namespace that hides it.
    pub(crate) fn pid(&self) -> io::Result<Option<u32>> {
        let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", self.0.as_raw_fd()))?;
        let pid = about.lines().find_map(|line| line.strip_prefix("Pid:"));
        Ok(pid.and_then(|pid| pid.trim().parse().ok()).filter(|pid| *pid != 0))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{PidfdFlags, pidfd_open};

    use super::*;

    #[test]
    fn the_handle_of_a_process_that_has_ended_has_no_number() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
        let handle = ProcessHandle(pidfd_open(pid, PidfdFlags::empty()).unwrap());
        assert_eq!(handle.pid().unwrap(), Some(child.id()));
        child.wait().unwrap();
        assert_eq!(handle.pid().unwrap(), None);
    }
}
