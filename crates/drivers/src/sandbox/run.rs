//! A command that runs in a box, as the process sees it that started it.

use std::future::pending;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Signal, pidfd_send_signal};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::{sleep, timeout};

use super::confinement::BoxTier;
use super::fork_server::StartedGuard;
use super::handed_out::BoxHandouts;
use super::kept_output::{KeptOutput, OutputStream};
use super::network::BoxListener;
use super::report::{BoxReport, BoxUsage, REPORT_BYTES, Reason};
use super::requests::GuardRequest;
use super::step::BoxStep;
use super::terminal::BoxTerminal;

/// How much longer than its command a guard may take to end.
const GUARD_SLACK: Duration = Duration::from_secs(8);
/// How long what was written may take to be read after everything has ended.
const DRAIN: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 64 << 10;

/// How a command ended. Nothing of it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BoxedExit {
    /// With its exit code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
    TimedOut,
    /// It was asked for.
    Cancelled,
    /// Past a limit.
    PastLimit(BoxLimit),
    /// The box could not be made, or the command not be run in it.
    NotStarted {
        step: BoxStep,
        errno: i32,
    },
    /// Its guard was killed, and the box ended with it.
    GuardLost,
    /// Nothing was to be started, and everything is ready for it.
    Ready,
}

/// What a box had too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxLimit {
    Processes,
    Memory,
    Disk,
}

/// All about a command that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxedEnd {
    pub exit: BoxedExit,
    pub tier: BoxTier,
    pub stdout: KeptOutput,
    pub stderr: KeptOutput,
    pub peak: BoxUsage,
}

/// A command that runs. Dropping it kills everything in its box.
#[derive(Debug)]
pub struct BoxedRun {
    guard: StartedGuard,
    /// It keeps packets apart; the type for streams is only how tokio waits for it.
    control: UnixStream,
    tier: BoxTier,
    timeout: Duration,
    streams: [Stream; 2],
    pipes: Option<BoxPipes>,
    report: Option<BoxReport>,
    handed_out: BoxHandouts,
}

/// Our ends of the standard streams of a command.
pub(super) struct StreamsKept {
    /// Only of a conversation, which its caller reads as well.
    pub(super) stdin: Option<OwnedFd>,
    pub(super) output: [OwnedFd; 2],
    /// As for [`BoxedCommand`](super::BoxedCommand).
    pub(super) part_bytes_max: usize,
}

/// The conversation with a command.
#[derive(Debug)]
pub struct BoxPipes {
    pub stdin: Sender,
    pub stdout: Receiver,
}

#[derive(Debug)]
struct Stream {
    name: OutputStream,
    /// None at its end.
    from: Option<Receiver>,
    kept: KeptOutput,
}

impl BoxedRun {
    pub(super) fn new(
        guard: StartedGuard,
        control: OwnedFd,
        kept: Option<StreamsKept>,
        (tier, handed_out): (BoxTier, BoxHandouts),
        timeout: Duration,
    ) -> io::Result<Self> {
        let part_bytes_max = kept.as_ref().map_or(0, |kept| kept.part_bytes_max);
        let (stdin, output) = kept.map_or((None, [None, None]), |kept| (kept.stdin, kept.output.map(Some)));
        let receiver = |from: Option<OwnedFd>| from.map(Receiver::from_owned_fd).transpose();
        let [stdout, stderr] = output.map(receiver);
        let (stdout, pipes) = match (stdin, stdout?) {
            (Some(stdin), Some(stdout)) => {
                (None, Some(BoxPipes { stdin: Sender::from_owned_fd(stdin)?, stdout }))
            }
            (_, stdout) => (stdout, None),
        };
        let stream = |name, from| Stream { name, from, kept: KeptOutput::new(part_bytes_max) };
        let streams = [stream(OutputStream::Stdout, stdout), stream(OutputStream::Stderr, stderr?)];
        let control = UnixStream::from_std(control.into())?;
        Ok(Self { guard, control, tier, timeout, streams, pipes, report: None, handed_out })
    }

    /// The number of the guard's process, for those who watch processes.
    #[must_use]
    pub const fn guard_pid(&self) -> u32 {
        self.guard.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Where the box connects to, if it was asked for; once.
    pub const fn take_network(&mut self) -> Option<BoxListener> {
        self.handed_out.network.take()
    }

    /// The terminal of a program, if it was asked for; once.
    pub const fn take_terminal(&mut self) -> Option<BoxTerminal> {
        self.handed_out.terminal.take()
    }

    /// Both ends of a conversation, if it is one; once.
    pub const fn take_pipes(&mut self) -> Option<BoxPipes> {
        self.pipes.take()
    }

    /// Asks for the end of everything in the box. [`finish`](Self::finish) says when it is done.
    pub fn cancel(&self) {
        self.ask(GuardRequest::End);
    }

    /// Interrupts every process of a program's box, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.ask(GuardRequest::Interrupt);
    }

    /// Asks every process of a program's box to end.
    pub fn terminate(&self) {
        self.ask(GuardRequest::Terminate);
    }

    fn ask(&self, request: GuardRequest) {
        // A guard that cannot be asked has ended.
        let _ = send(self.control.as_fd(), &[request.byte()], SendFlags::NOSIGNAL);
    }

    /// Waits for the end of the command and of everything that it started, and gives what they write to `on_output` as
    /// it comes. May be dropped and called again.
    pub async fn finish(
        &mut self,
        on_output: &mut (dyn FnMut(OutputStream, &[u8]) + Send),
    ) -> io::Result<BoxedEnd> {
        let lost = sleep(self.timeout.saturating_add(GUARD_SLACK));
        tokio::pin!(lost);
        let mut buffer = vec![0; READ_BYTES];
        let mut is_over = self.report.is_some();
        while !is_over {
            let [stdout, stderr] = &self.streams;
            tokio::select! {
                said = receive(&self.control) => {
                    self.report = said?;
                    is_over = true;
                }
                () = readable(stdout) => self.streams[0].read(&mut buffer, on_output),
                () = readable(stderr) => self.streams[1].read(&mut buffer, on_output),
                () = &mut lost => is_over = true,
            }
        }
        if self.report.is_none() {
            // The first process of the box notices and ends the rest.
            match pidfd_send_signal(&self.guard.handle, Signal::KILL) {
                // It has ended.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let drain = async {
            while self.streams.iter().any(|stream| stream.from.is_some()) {
                let [stdout, stderr] = &self.streams;
                tokio::select! {
                    () = readable(stdout) => self.streams[0].read(&mut buffer, on_output),
                    () = readable(stderr) => self.streams[1].read(&mut buffer, on_output),
                }
            }
        };
        // What holds a stream open now is not in the box.
        let _ = timeout(DRAIN, drain).await;
        // The guard has the other end until it ends.
        while receive(&self.control).await?.is_some() {}
        Ok(self.ended())
    }

    fn ended(&self) -> BoxedEnd {
        let (exit, peak) = match self.report {
            None | Some(BoxReport::Started { .. }) => (BoxedExit::GuardLost, BoxUsage::default()),
            Some(BoxReport::Ready) => (BoxedExit::Ready, BoxUsage::default()),
            Some(BoxReport::NotStarted { step, errno }) => {
                (BoxedExit::NotStarted { step, errno }, BoxUsage::default())
            }
            Some(BoxReport::Ended { status, reason, usage }) => (exit(status, reason), usage),
        };
        let [stdout, stderr] = self.streams.each_ref().map(|stream| stream.kept.clone());
        BoxedEnd { exit, tier: self.tier, stdout, stderr, peak }
    }
}

fn exit(status: i32, reason: Reason) -> BoxedExit {
    match reason {
        Reason::Command if libc::WIFSIGNALED(status) => BoxedExit::Signalled(libc::WTERMSIG(status)),
        Reason::Command => BoxedExit::Exited(libc::WEXITSTATUS(status)),
        Reason::Timeout => BoxedExit::TimedOut,
        Reason::Asked => BoxedExit::Cancelled,
        Reason::Processes => BoxedExit::PastLimit(BoxLimit::Processes),
        Reason::Memory => BoxedExit::PastLimit(BoxLimit::Memory),
        Reason::Disk => BoxedExit::PastLimit(BoxLimit::Disk),
    }
}

impl Stream {
    fn read(&mut self, buffer: &mut [u8], on_output: &mut (dyn FnMut(OutputStream, &[u8]) + Send)) {
        let Some(from) = &self.from else { return };
        match from.try_read(buffer) {
            Ok(0) => self.from = None,
            Ok(count) => {
                self.kept.push(&buffer[..count]);
                on_output(self.name, &buffer[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.from = None,
        }
    }
}

async fn readable(stream: &Stream) {
    match &stream.from {
        // What is wrong with it is found by reading.
        Some(from) => drop(from.readable().await),
        None => pending().await,
    }
}

/// What the guard says at last; nothing if it is gone.
async fn receive(control: &UnixStream) -> io::Result<Option<BoxReport>> {
    let mut bytes = [0; REPORT_BYTES];
    loop {
        let received = control
            .async_io(Interest::READABLE, || Ok(recv(control.as_fd(), &mut bytes, RecvFlags::empty())?));
        match received.await {
            Ok((REPORT_BYTES, _)) => return Ok(BoxReport::from_bytes(&bytes)),
            Ok(_) => return Ok(None),
            // It ended without reading everything; what it said comes after this.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            Err(error) => return Err(error),
        }
    }
}
