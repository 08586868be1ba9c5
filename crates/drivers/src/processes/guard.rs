//! The guard of one program, in a separate process.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitStatus, getpid, getrlimit, set_child_subreaper, setrlimit, setsid,
};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::time::{sleep, timeout};

use super::control::{ControlSocket, GuardOrder, GuardReport, GuardRequest, ProgramSession};
use super::descendants::{Reaped, reap, signal_all};
use super::own_process::{hide_from_programs, listen_unless_ignored};

/// How long a program may take to end after it was asked to.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// How long it may take until everything that was killed is gone.
pub(super) const KILLED: Duration = Duration::from_secs(5);
/// How often it is looked for new processes while everything is killed.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs a program with its arguments until it ends, or until the process that started this one wants its end or is gone.
/// Then nothing that the program started is left. Everything but the command line comes through the socket that
/// [`GuardedProgram`](super::GuardedProgram) gives this process as its standard input.
pub async fn guard(program: &[OsString]) -> io::Result<()> {
    hide_from_programs()?;
    let control = ControlSocket::of_guard()?;
    let Some((order, streams)) = control.receive_with().await? else { return Ok(()) };
    // Before the program starts: no end of a child is missed.
    let mut ends = signal(SignalKind::child())?;
    // Signals from the terminal are for the program: with a handler they do not end us.
    let _ours = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
    let _others = [listen_unless_ignored(SignalKind::hangup())?, listen_unless_ignored(SignalKind::quit())?];
    let program = match start(program, &order, streams) {
        Ok(program) => program,
        Err(error) => {
            // Only a wrong message has no number.
            let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
            return control.send(&GuardReport::NotStarted { errno });
        }
    };
    let followed = follow(program, &control, &mut ends).await;
    // Whatever went wrong, nothing stays.
    let killed = kill_all(program, &mut ends).await;
    if let Some(status) = followed?.or(killed?) {
        // There may be no reader.
        let _ = control.send(&GuardReport::Ended { status: status.as_raw() });
    }
    Ok(())
}

fn start(program: &[OsString], order: &GuardOrder, streams: Vec<OwnedFd>) -> io::Result<Pid> {
    let (Some((program, args)), Ok([stdin, stdout, stderr])) =
        (program.split_first(), <[OwnedFd; 3]>::try_from(streams))
    else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if order.session == ProgramSession::OwnSession {
        setsid()?;
    }
    if let Some(open_files) = order.open_files {
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(open_files), ..limit })?;
    }
    // What the program leaves behind becomes our child.
    set_child_subreaper(Some(getpid()))?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    let child = command.spawn()?;
    // Its exit is taken by `reap`, with everyone else's.
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::from(Errno::SRCH))
}

/// Waits until the program has ended, or everything should end now.
async fn follow(
    program: Pid,
    control: &ControlSocket,
    ends: &mut unix::Signal,
) -> io::Result<Option<WaitStatus>> {
    let mut is_ending = false;
    let grace = sleep(Duration::MAX);
    tokio::pin!(grace);
    loop {
        tokio::select! {
            _ = ends.recv() => {
                let reaped = reap(program)?;
                if reaped.program.is_some() {
                    return Ok(reaped.program);
                }
            }
            request = control.receive() => match request? {
                Some(GuardRequest::Interrupt) => signal_all(Signal::INT),
                Some(GuardRequest::End) => {
                    signal_all(Signal::TERM);
                    if !is_ending {
                        is_ending = true;
                        grace.set(sleep(GRACE));
                    }
                }
                Some(GuardRequest::Kill) | None => return Ok(None),
            },
            () = &mut grace, if is_ending => return Ok(None),
        }
    }
}

/// Kills everything below this process, again and again: a process may start another one while it is killed.
async fn kill_all(program: Pid, ends: &mut unix::Signal) -> io::Result<Option<WaitStatus>> {
    let mut ended = None;
    let killing = async {
        loop {
            let Reaped { program, is_last } = reap(program)?;
            ended = ended.or(program);
            if is_last {
                return io::Result::Ok(());
            }
            signal_all(Signal::KILL);
            // The next end, or the next look.
            let _ = timeout(LOOK_EVERY, ends.recv()).await;
        }
    };
    // What cannot be killed within this time waits for a device, and ends with that wait.
    timeout(KILLED, killing).await.unwrap_or(Ok(()))?;
    Ok(ended)
}
