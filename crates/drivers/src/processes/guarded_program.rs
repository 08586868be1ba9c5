//! A program that runs under a guard, as the process sees it that started both.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::control::{ControlSocket, GuardOrder, GuardReport, GuardRequest, ProgramSession};
use super::guard::{GRACE, KILLED};

/// How much longer than it should take a guard may take to end.
const GUARD_SLACK: Duration = Duration::from_secs(1);

/// What starts a guard. `--`, the program and its arguments are appended; the process calls [`guard`](super::guard) with
/// what comes after `--`.
#[derive(Clone, Debug)]
pub struct GuardCommand {
    pub program: OsString,
    pub args: Vec<OsString>,
}

/// What to start.
#[derive(Debug)]
pub struct ProgramOrder {
    /// Found by the `PATH` of its environment, if it names no folder.
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The whole of it.
    pub environment: Vec<(OsString, OsString)>,
    /// Ours, if there is none.
    pub folder: Option<PathBuf>,
    pub streams: StandardStreams,
    pub session: ProgramSession,
    /// Its limit of open files, if that is not ours.
    pub open_files: Option<u64>,
}

/// Where a program reads and writes.
#[derive(Debug)]
pub struct StandardStreams {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

impl StandardStreams {
    /// Those of this process.
    pub fn inherited() -> io::Result<Self> {
        Ok(Self {
            stdin: io::stdin().as_fd().try_clone_to_owned()?,
            stdout: io::stdout().as_fd().try_clone_to_owned()?,
            stderr: io::stderr().as_fd().try_clone_to_owned()?,
        })
    }

    /// Leaves nothing in the place of terminals. Which streams were one, in the order of their numbers.
    pub fn without_terminals(&mut self) -> io::Result<[bool; 3]> {
        let mut on_terminal = [false; 3];
        for (stream, is_one) in
            [&mut self.stdin, &mut self.stdout, &mut self.stderr].into_iter().zip(&mut on_terminal)
        {
            *is_one = stream.is_terminal();
            if *is_one {
                *stream = File::options().read(true).write(true).open("/dev/null")?.into();
            }
        }
        Ok(on_terminal)
    }
}

/// How a run ended. Nothing of it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    Exited(ExitStatus),
    /// The program could not be started.
    NotStarted {
        errno: i32,
    },
    /// Its guard was killed. Only the processes of its group are known to have ended.
    GuardLost(ExitStatus),
}

/// A program that runs. Dropping it kills everything of its run.
#[derive(Debug)]
pub struct GuardedProgram {
    guard: Child,
    control: ControlSocket,
    session: ProgramSession,
    report: Option<GuardReport>,
    end: Option<ProgramEnd>,
}

impl GuardedProgram {
    /// Needs a tokio runtime with its IO.
    pub fn start(guard: &GuardCommand, order: ProgramOrder) -> io::Result<Self> {
        let ProgramOrder { program, args, environment, folder, streams, session, open_files } = order;
        let (control, guards) = ControlSocket::pair()?;
        let mut command = Command::new(&guard.program);
        command.args(&guard.args).arg("--").arg(program).args(args);
        command.env_clear().envs(environment);
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        command.stdin(Stdio::from(guards)).stdout(Stdio::null());
        if session == ProgramSession::OwnGroup {
            command.process_group(0);
        }
        let StandardStreams { stdin, stdout, stderr } = streams;
        control.send_with(
            &GuardOrder { session, open_files },
            &[stdin.as_fd(), stdout.as_fd(), stderr.as_fd()],
        )?;
        Ok(Self { guard: command.spawn()?, control, session, report: None, end: None })
    }

    /// Waits for the end of the program and of everything that it started. May be dropped and called again.
    pub async fn wait(&mut self) -> io::Result<ProgramEnd> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        while let Some(report) = self.control.receive().await? {
            self.report = Some(report);
        }
        if self.report.is_none() {
            self.kill_group();
        }
        let guard = self.guard.wait().await?;
        let end = match self.report {
            Some(GuardReport::Ended { status }) => ProgramEnd::Exited(ExitStatus::from_raw(status)),
            Some(GuardReport::NotStarted { errno }) => ProgramEnd::NotStarted { errno },
            None => ProgramEnd::GuardLost(guard),
        };
        self.end = Some(end);
        Ok(end)
    }

    /// Interrupts every process of the run.
    pub fn interrupt(&self) {
        self.send(&GuardRequest::Interrupt);
    }

    /// Asks every process of the run to end, and kills what is left after a while or when the program itself has ended.
    pub async fn end(&mut self) -> io::Result<ProgramEnd> {
        self.send(&GuardRequest::End);
        self.gone_within(GRACE + KILLED + GUARD_SLACK).await
    }

    /// Kills every process of the run.
    pub async fn kill(&mut self) -> io::Result<ProgramEnd> {
        self.send(&GuardRequest::Kill);
        self.gone_within(KILLED + GUARD_SLACK).await
    }

    fn send(&self, request: &GuardRequest) {
        // A guard that cannot be told anything has ended, or does not answer: those who wait for it notice both.
        let _ = self.control.send(request);
    }

    async fn gone_within(&mut self, time: Duration) -> io::Result<ProgramEnd> {
        // It may have been stopped.
        if self.end.is_none()
            && let Some(guard) = self.guard_pid()
        {
            let _ = kill_process(guard, Signal::CONT);
        }
        if let Ok(end) = timeout(time, self.wait()).await {
            return end;
        }
        self.kill_group();
        self.guard.start_kill()?;
        self.wait().await
    }

    /// Kills the processes in the group of the guard, and with them itself.
    fn kill_group(&self) {
        if self.session != ProgramSession::Shared
            && let Some(guard) = self.guard_pid()
        {
            // There may be none left.
            let _ = kill_process_group(guard, Signal::KILL);
        }
    }

    /// Its number, which is its own until its exit is taken.
    fn guard_pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.guard.id()?).ok()?)
    }
}
