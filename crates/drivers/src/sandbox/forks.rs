//! A box asks before it makes a process or a thread. The kernel holds the call until the guard has answered, so that no
//! command has more of them than it may, however fast it makes them and however busy the machine is.

use std::collections::BTreeSet;
use std::io;
use std::num::NonZeroI32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Pid;

use super::calls::{answer_call, asked_call, group_of};
use super::descriptors;
use super::order::Walls;
use super::report::Reason;
use super::usage::{Sampler, Scope, may_be_in_a_call};

/// What a call that makes something would make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    Process,
    Thread,
}

/// The guard's end of the asking.
pub(super) struct Forks {
    from: OwnedFd,
    /// Kept, so that the other end has nothing to say once the listener has come.
    to: OwnedFd,
    /// Comes from the command before it is executed.
    listener: Option<OwnedFd>,
    /// How many more there may be before they are counted.
    processes_left: u64,
    threads_left: u64,
    /// Who was allowed to make something since they were counted last.
    allowed: BTreeSet<NonZeroI32>,
}

impl Forks {
    pub(super) fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (from, to) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        Ok(Self { from, to, listener: None, processes_left: 0, threads_left: 0, allowed: BTreeSet::new() })
    }

    /// The end of the box, in its first process.
    pub(super) fn into_box_end(self) -> OwnedFd {
        self.to
    }

    /// What becomes readable when there is something to do.
    pub(super) fn source(&self) -> BorrowedFd<'_> {
        self.listener.as_ref().unwrap_or(&self.from).as_fd()
    }

    /// Answers one call. While its processes are counted, the box makes nothing. The limit that it would pass, if it would.
    pub(super) fn answer(
        &mut self,
        sampler: &mut Sampler,
        first: Pid,
        walls: Walls,
    ) -> io::Result<Option<Reason>> {
        let Some(listener) = &self.listener else {
            self.listener = receive(&self.from)?;
            return Ok(None);
        };
        let Some(call) = asked_call(listener.as_fd())? else {
            if is_over(listener)? {
                self.listener = None;
            }
            return Ok(None);
        };
        let left = match call.made {
            Made::Process => self.processes_left,
            Made::Thread => self.threads_left,
        };
        if left == 0 {
            let scope = match walls {
                Walls::Namespaces => Some(Scope::Namespace(first)),
                Walls::None | Walls::Landlock => call.by.and_then(group_of).map(Scope::Group),
            };
            // A call that was allowed may not have made anything yet: what it makes is not listed then.
            self.allowed.retain(|thread| may_be_in_a_call(*thread));
            let unlisted = self.allowed.len() as u64;
            // What cannot be counted makes nothing: the process that asks, or the whole box, has just ended.
            let Some(Ok(left)) = scope.map(|scope| sampler.left(scope)) else {
                answer_call(listener.as_fd(), &call, Err(Errno::AGAIN))?;
                return Ok(None);
            };
            self.processes_left = left.0.saturating_sub(unlisted);
            self.threads_left = left.1.saturating_sub(unlisted);
        }
        let left = match call.made {
            Made::Process => &mut self.processes_left,
            Made::Thread => &mut self.threads_left,
        };
        if *left == 0 {
            answer_call(listener.as_fd(), &call, Err(Errno::AGAIN))?;
            return Ok(Some(Reason::Processes));
        }
        *left -= 1;
        self.allowed.extend(call.by.map(Pid::as_raw_nonzero));
        answer_call(listener.as_fd(), &call, Ok(()))?;
        Ok(None)
    }
}

/// Whether no process is left that could ask.
fn is_over(listener: &OwnedFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    retry_on_intr(|| poll(&mut polled, Some(&Timespec::default())))?;
    Ok(polled[0].revents().contains(PollFlags::HUP))
}

/// Hands the listener of this process to its guard. Does not allocate.
pub(super) fn hand_over(to: BorrowedFd<'_>, listener: BorrowedFd<'_>) -> io::Result<()> {
    Ok(descriptors::send(to, &[0], &[listener])?)
}

/// The listener, if it has come. The end of a box that never had one is not an error.
fn receive(from: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    match descriptors::receive(from, &mut [0]) {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        received => Ok(received?.1.into_iter().next()),
    }
}
