//! The process that guards are forked from (decision 0069). Starting a program again costs more than everything else of a
//! box, so this program is started once, and forks when a guard is needed. It reads no order and opens nothing: the
//! descriptors of a call go to the fork and are closed here, so nothing of one call reaches the next.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, WaitOptions, setsid, wait};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::calls::{ForkedWithHandle, collect_children, exit_now, forget_children, fork_with_handle};
use super::descriptors::{receive, send};
use super::entry::HELPER_NAME;
use super::watch::watch;

/// It ends when no guard was needed for this long, which is checked this often.
const IDLE: Duration = Duration::from_secs(60);
/// A fork takes less than a millisecond.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A guard that was started.
#[derive(Debug)]
pub(super) struct StartedGuard {
    pub(super) pid: Pid,
    pub(super) handle: OwnedFd,
}

/// Starts guards. The process for that is started when it is needed.
#[derive(Debug)]
pub(super) struct ForkServer {
    helper: PathBuf,
    /// What each guard has on its command line.
    mark: Vec<OsString>,
    running: Arc<Mutex<Option<Running>>>,
}

#[derive(Debug)]
struct Running {
    requests: OwnedFd,
    /// How many guards it was asked for.
    asked: u64,
    /// Ends the process when it is not needed any more.
    timer: JoinSet<()>,
    /// It ends when it has nothing to hear any more and its guards have ended, and is collected then.
    _process: Child,
}

impl ForkServer {
    pub(super) fn new(helper: PathBuf, mark: Vec<OsString>) -> Self {
        Self { helper, mark, running: Arc::default() }
    }

    /// Starts a guard with these as its standard input, output and error.
    pub(super) fn start_guard(&self, streams: [BorrowedFd<'_>; 3]) -> io::Result<StartedGuard> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let is_heard = running.as_mut().is_some_and(|server| server.ask(&streams).is_ok());
        if !is_heard {
            // There is none, or it was killed.
            let server = running.insert(self.start()?);
            server.timer.spawn(end_when_idle(Arc::downgrade(&self.running)));
            server.ask(&streams)?;
        }
        let answer =
            running.as_ref().map_or_else(|| Err(io::ErrorKind::NotConnected.into()), Running::answer);
        if answer.is_err() {
            // It may answer yet, and the next call would take that for its own.
            *running = None;
        }
        answer
    }

    fn start(&self) -> io::Result<Running> {
        let flags = SocketFlags::CLOEXEC;
        let (requests, from) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for direction in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&requests, direction, Some(ANSWER_TIMEOUT))?;
        }
        let mut helper = Command::new(&self.helper);
        helper.arg0(HELPER_NAME).args(&self.mark).env_clear().current_dir("/");
        helper.stdin(Stdio::from(from)).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Running { requests, asked: 0, timer: JoinSet::new(), _process: helper.spawn()? })
    }
}

impl Running {
    fn ask(&mut self, streams: &[BorrowedFd<'_>; 3]) -> Result<(), Errno> {
        self.asked += 1;
        send(self.requests.as_fd(), &[0], streams)
    }

    fn answer(&self) -> io::Result<StartedGuard> {
        let mut answer = [0; 4];
        let (_, handles) = received(self.requests.as_fd(), &mut answer)?;
        let number = i32::from_le_bytes(answer);
        match (Pid::from_raw(number.max(0)), handles.into_iter().next()) {
            (Some(pid), Some(handle)) => Ok(StartedGuard { pid, handle }),
            _ if number < 0 => Err(io::Error::from_raw_os_error(-number)),
            _ => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }
}

async fn end_when_idle(running: Weak<Mutex<Option<Running>>>) {
    let mut asked_before = 0;
    loop {
        {
            let Some(running) = running.upgrade() else { return };
            let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(asked) = running.as_ref().map(|server| server.asked) else { return };
            if asked == asked_before {
                *running = None;
                return;
            }
            asked_before = asked;
        }
        sleep(IDLE).await;
    }
}

/// Everything of the process that forks. Its standard input is the socket; it ends when the other end is closed.
pub(super) fn serve() -> io::Result<()> {
    let requests = io::stdin();
    // Away from terminals and groups, whose signals are not for it.
    let _ = setsid();
    forget_children()?;
    loop {
        let (bytes, streams) = received(requests.as_fd(), &mut [0])?;
        if bytes == 0 {
            return wait_for_guards();
        }
        let answered = match fork_with_handle() {
            Ok(ForkedWithHandle::Child) => {
                let is_ready = become_guard(streams).is_ok();
                exit_now(if is_ready && watch().is_ok() { 0 } else { 1 });
            }
            Ok(ForkedWithHandle::Parent(pid, handle)) => {
                let pid = pid.as_raw_nonzero().get().to_le_bytes();
                send(requests.as_fd(), &pid, &[handle.as_fd()])
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
                send(requests.as_fd(), &(-errno).to_le_bytes(), &[])
            }
        };
        if answered.is_err() {
            // The call was given up.
            return wait_for_guards();
        }
    }
}

/// Returns when the last guard has ended. Children that are forgotten end this wait only then. Without a parent they would
/// be left to process 1, which collects them in most systems, and in few containers.
fn wait_for_guards() -> io::Result<()> {
    loop {
        match wait(WaitOptions::empty()) {
            Err(Errno::CHILD) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The next message. A signal does not end the wait for it.
fn received(from: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    loop {
        match receive(from, bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            received => return received,
        }
    }
}

/// The socket of the process that forked is closed by this: it was the standard input.
fn become_guard(streams: Vec<OwnedFd>) -> io::Result<()> {
    collect_children()?;
    let [control, stdout, stderr] =
        <[OwnedFd; 3]>::try_from(streams).map_err(|_| io::ErrorKind::InvalidInput)?;
    dup2_stdin(&control)?;
    dup2_stdout(&stdout)?;
    Ok(dup2_stderr(&stderr)?)
}
