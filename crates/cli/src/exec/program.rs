//! The program that `spinney exec` starts, and everything that it starts in turn: whatever ends the run ends all of it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal as _, PipeWriter};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper,
    set_dumpable_behavior, waitpid,
};
use spinney::clock::instant;
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::sleep;

use crate::exec::claude::SettingsFile;

/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);
/// How often it is looked whether something of it still lives.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long it may take until everything that was killed is gone.
const KILLED: Duration = Duration::from_secs(5);

/// The hidden command that guards a program.
pub(crate) const GUARD: &str = "exec-guard";

/// A running program.
pub(crate) struct Program {
    child: Child,
    group: Group,
}

/// Where a program reads and writes.
pub(crate) enum ProgramStreams {
    /// Where we do: the terminal is the program's.
    Inherited,
    /// It has no terminal. What it would write there goes here; files and pipes it gets as they are.
    Piped(PipeWriter),
}

/// Whether a program shares our process group. At a terminal it does, because only one group may read from it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Shared,
    Own,
}

/// What to start.
pub(crate) struct ProgramStart {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) set: Vec<(&'static str, OsString)>,
    pub(crate) removed: Vec<&'static str>,
    /// A file for as long as it runs.
    pub(crate) settings: Option<SettingsFile>,
}

impl Program {
    /// Starts it with this limit of open files, if there is one: ours may be higher.
    pub(crate) fn start(
        start: &ProgramStart,
        streams: ProgramStreams,
        open_files: Option<u64>,
    ) -> io::Result<Self> {
        // What the program leaves behind becomes our child, so that it can be found and ended.
        set_child_subreaper(Some(getpid()))?;
        // Ourselves again, as the guard of the program.
        let mut command = Command::new("/proc/self/exe");
        let parent = getpid().as_raw_nonzero().to_string();
        command.args([GUARD, "--parent", &parent]);
        if let Some(open_files) = open_files {
            command.args(["--open-files", &open_files.to_string()]);
        }
        if matches!(streams, ProgramStreams::Piped(_)) {
            command.arg("--no-terminal");
        }
        command.arg("--").arg(&start.program).args(&start.args);
        command.kill_on_drop(true);
        for name in &start.removed {
            command.env_remove(name);
        }
        for (name, value) in &start.set {
            command.env(name, value);
        }
        let group = match streams {
            ProgramStreams::Inherited if io::stdin().is_terminal() => Group::Shared,
            ProgramStreams::Inherited => {
                command.process_group(0);
                Group::Own
            }
            ProgramStreams::Piped(to) => {
                if io::stdin().is_terminal() {
                    command.stdin(Stdio::null());
                }
                if io::stdout().is_terminal() {
                    command.stdout(to.try_clone()?);
                }
                if io::stderr().is_terminal() {
                    command.stderr(to);
                }
                // Its session is a group, too.
                Group::Own
            }
        };
        Ok(Self { child: command.spawn()?, group })
    }

    /// Waits for the end of the program itself.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Passes an interrupt on. At a terminal the program got it already.
    pub(crate) fn interrupt(&self) {
        if self.group == Group::Own {
            signal_all(Signal::INT);
        }
    }

    /// Ends the program and everything that it started: it is asked first, and killed after a while.
    pub(crate) async fn end(&mut self) {
        signal_all(Signal::TERM);
        self.gone_within(GRACE).await;
        self.kill().await;
    }

    /// Ends it at once.
    pub(crate) async fn kill(&mut self) {
        let until = instant() + KILLED;
        // A process may start another one while it is killed.
        while !self.is_gone() && instant() < until {
            signal_all(Signal::KILL);
            sleep(LOOK_EVERY).await;
        }
    }

    async fn gone_within(&mut self, time: Duration) {
        let until = instant() + time;
        while !self.is_gone() && instant() < until {
            sleep(LOOK_EVERY).await;
        }
    }

    /// Whether nothing of it lives.
    fn is_gone(&mut self) -> bool {
        let main = self.child.id();
        let is_over = !matches!(self.child.try_wait(), Ok(None));
        reap(main);
        is_over && descendants().is_empty()
    }
}

/// Listens to a signal, unless we were started with it ignored, as by `nohup`: then it stays so, for the program as well.
pub(crate) fn listen_unless_ignored(kind: SignalKind) -> io::Result<Option<unix::Signal>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let is_ignored = (ignored >> (kind.as_raw_value() - 1)) & 1 == 1;
    if is_ignored { Ok(None) } else { unix::signal(kind).map(Some) }
}

/// The user's keys are in our environment and our memory. From now on the program can read neither, although it runs as the
/// same user.
pub(crate) fn hide_from_programs() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// The exit code of a program, as shells give it.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Whether a program ended because somebody interrupted it.
pub(crate) fn was_interrupted(status: ExitStatus) -> bool {
    const INTERRUPT: i32 = 2;
    status.signal() == Some(INTERRUPT) || status.code() == Some(128 + INTERRUPT)
}

/// Ends everything below this process at once.
pub(crate) async fn kill_all() {
    let until = instant() + KILLED;
    while !descendants().is_empty() && instant() < until {
        signal_all(Signal::KILL);
        sleep(LOOK_EVERY).await;
        reap(None);
    }
}

fn signal_all(signal: Signal) {
    for pid in descendants() {
        // It may have ended meanwhile.
        let _ = kill_process(pid, signal);
    }
}

/// Every process below this one.
fn descendants() -> Vec<Pid> {
    let mut found: Vec<Pid> = children(getpid());
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        let more = children(pid);
        found.extend(more);
    }
    found
}

/// The children of a process, whichever of its threads started them.
fn children(pid: Pid) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    let Ok(tasks) = tasks else { return Vec::new() };
    let listed = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    listed
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}

/// Takes the exit of processes that were left to us. The program's own is for whoever waits for it.
fn reap(main: Option<u32>) {
    for pid in children(getpid()) {
        let is_main = main.is_some_and(|main| u32::try_from(pid.as_raw_nonzero().get()) == Ok(main));
        if !is_main {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// The name of a program without its folder.
pub(crate) fn base_name(program: &OsStr) -> String {
    let name = std::path::Path::new(program).file_name().unwrap_or(program);
    name.to_string_lossy().into_owned()
}
