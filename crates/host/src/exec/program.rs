//! A program under a guard: whatever ends the run ends everything that the program started.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal as _, PipeWriter};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitStatus;

use spinney_drivers::processes::{
    GuardCommand, GuardedProgram, ProgramEnd, ProgramOrder, ProgramSession, StandardStreams,
};
use spinney_drivers::sandbox::BoxTerminal;
use spinney_kernel::port::ConnectionLog;

use super::boxed::{
    BoxStart, BoxedProgramEnd, BoxedProgramRun, ProgramBox, ProgramBoxError, RefusedConnection,
};
use super::claude::SettingsFile;
use crate::inside::{GUARD, HOME_OPTION, HomeInode, OURSELVES};
use crate::system::processes::{self, INTERRUPT};

/// The exit codes of a program that cannot be started, as shells have them.
pub const NOT_EXECUTABLE: u8 = 126;
/// There is no such program.
pub const NOT_FOUND: u8 = 127;

/// A running program.
pub struct Program {
    name: String,
    running: Running,
}

enum Running {
    Guarded(Box<GuardedProgram>, ProgramSession),
    /// In a box, perhaps with a terminal of its own.
    Boxed(Box<BoxedProgramRun>, BoxTerminalUse),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BoxTerminalUse {
    None,
    Controls,
}

/// A box to start a program in.
pub struct BoxedStart {
    /// It was prepared before the run.
    pub prepared: ProgramBox,
    /// Where the gateway listens.
    pub gateway: SocketAddr,
    /// Columns and rows of the person's terminal.
    pub terminal_size: (u16, u16),
    /// What the program connects to, for the journal of its run.
    pub connections: ConnectionLog,
}

/// Where a program reads and writes.
pub enum ProgramStreams {
    /// Where we do: the terminal is the program's.
    Inherited,
    /// It has no terminal. What it would write there goes here; files and pipes it gets as they are.
    Piped(PipeWriter),
}

/// What to start.
pub struct ProgramStart {
    /// The program, as it was named.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables that it gets.
    pub set: Vec<(String, OsString)>,
    /// Our variables that it does not get.
    pub removed: Vec<String>,
    /// A file for as long as it runs.
    pub settings: Option<SettingsFile>,
    /// The home of its run.
    pub home: HomeInode,
}

impl Program {
    /// Starts it with this limit of open files, if there is one: ours may be higher.
    pub fn start(start: &ProgramStart, streams: ProgramStreams, open_files: Option<u64>) -> io::Result<Self> {
        // What `inside.rs` reads comes first.
        let args = [GUARD, HOME_OPTION, &start.home.to_string()].map(OsString::from).to_vec();
        let guard = GuardCommand { program: OURSELVES.into(), args };
        let session = match &streams {
            // At a terminal only one group may read from it.
            ProgramStreams::Inherited if io::stdin().is_terminal() => ProgramSession::Shared,
            ProgramStreams::Inherited => ProgramSession::OwnGroup,
            ProgramStreams::Piped(_) => ProgramSession::OwnSession,
        };
        let order = ProgramOrder {
            program: start.program.clone(),
            args: start.args.clone(),
            environment: start.environment(),
            folder: None,
            streams: streams.standard()?,
            session,
            open_files,
        };
        let running = Running::Guarded(Box::new(GuardedProgram::start(&guard, order)?), session);
        Ok(Self { name: base_name(&start.program), running })
    }

    /// Starts it in a box. Where it would have our terminal, it has one in the box.
    pub fn start_boxed(
        start: &ProgramStart,
        streams: ProgramStreams,
        open_files: Option<u64>,
        boxed: BoxedStart,
    ) -> Result<Self, ProgramBoxError> {
        let BoxedStart { prepared, gateway, terminal_size, connections } = boxed;
        let mut streams = streams.standard()?;
        let on_terminal = streams.without_terminals()?;
        let has_terminal = on_terminal.contains(&true);
        let running = prepared.start(BoxStart {
            arguments: [start.program.clone()].into_iter().chain(start.args.iter().cloned()).collect(),
            environment: start.environment(),
            streams,
            terminal: has_terminal.then_some((terminal_size, on_terminal)),
            open_files,
            gateway,
            settings: start.settings.as_ref().map(|file| file.path().to_owned()),
            connections,
        })?;
        // Only what is typed reaches its terminal.
        let terminal = if on_terminal[0] { BoxTerminalUse::Controls } else { BoxTerminalUse::None };
        Ok(Self { name: base_name(&start.program), running: Running::Boxed(Box::new(running), terminal) })
    }

    /// The terminal of its box, if it has one; once.
    pub fn take_terminal(&mut self) -> Option<BoxTerminal> {
        match &mut self.running {
            Running::Boxed(running, _) => running.take_terminal(),
            Running::Guarded(..) => None,
        }
    }

    /// What it left in a box's folder that the person's other programs run or obey, in words.
    pub async fn changes(&self) -> Option<String> {
        match &self.running {
            Running::Boxed(running, _) => running.changes().await,
            Running::Guarded(..) => None,
        }
    }

    /// The connections that its box refused until now, and how many more there may be.
    #[must_use]
    pub fn refused_connections(&self) -> (Vec<RefusedConnection>, u64) {
        match &self.running {
            Running::Boxed(running, _) => running.refused(),
            Running::Guarded(..) => (Vec::new(), 0),
        }
    }

    /// Waits for the end of the program and of everything that it started. One that cannot be started is complained about,
    /// and ends as in a shell.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let ended = match &mut self.running {
            Running::Guarded(running, _) => match running.wait().await? {
                // A killed guard ends a run as a killed program does.
                ProgramEnd::Exited(status) | ProgramEnd::GuardLost(status) => Ok(status),
                ProgramEnd::NotStarted { errno } => Err(errno),
            },
            Running::Boxed(running, _) => match running.wait().await? {
                BoxedProgramEnd::Exited(status) => Ok(status),
                BoxedProgramEnd::NotStarted { errno } => Err(errno),
            },
        };
        Ok(ended.unwrap_or_else(|errno| {
            let (why, code) = not_started(&io::Error::from_raw_os_error(errno));
            tracing::warn!("cannot start {}: {why}", self.name);
            processes::exited_with(code)
        }))
    }

    /// Passes an interrupt on. At a terminal the program got it already.
    pub fn interrupt(&self) {
        match &self.running {
            Running::Guarded(_, ProgramSession::Shared) | Running::Boxed(_, BoxTerminalUse::Controls) => {}
            Running::Guarded(running, _) => running.interrupt(),
            Running::Boxed(running, BoxTerminalUse::None) => running.interrupt(),
        }
    }

    /// Whether a signal may end the program before we see it: at a terminal both get it at the same time.
    pub fn may_precede_signals(&self) -> bool {
        match &self.running {
            Running::Guarded(_, session) => *session == ProgramSession::Shared,
            Running::Boxed(_, terminal) => *terminal == BoxTerminalUse::Controls,
        }
    }

    /// Ends the program and everything that it started: it is asked first, and killed after a while.
    pub async fn end(&mut self) -> io::Result<()> {
        match &mut self.running {
            Running::Guarded(running, _) => running.end().await.map(drop),
            Running::Boxed(running, _) => running.end().await,
        }
    }

    /// Ends it at once.
    pub async fn kill(&mut self) -> io::Result<()> {
        match &mut self.running {
            Running::Guarded(running, _) => running.kill().await.map(drop),
            Running::Boxed(running, _) => running.kill().await,
        }
    }
}

impl ProgramStart {
    /// Ours, without what leads past the gateway and with what leads to it.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let is_kept = |name: &OsStr| {
            self.removed.iter().all(|removed| removed.as_str() != name)
                && self.set.iter().all(|(set, _)| set.as_str() != name)
        };
        let kept = std::env::vars_os().filter(|(name, _)| is_kept(name));
        kept.chain(self.set.iter().map(|(name, value)| (OsString::from(name), value.clone()))).collect()
    }
}

impl ProgramStreams {
    fn standard(self) -> io::Result<StandardStreams> {
        let mut streams = StandardStreams::inherited()?;
        if let Self::Piped(to) = self {
            if io::stdin().is_terminal() {
                streams.stdin = File::open("/dev/null")?.into();
            }
            if io::stdout().is_terminal() {
                streams.stdout = to.try_clone()?.into();
            }
            if io::stderr().is_terminal() {
                streams.stderr = to.into();
            }
        }
        Ok(streams)
    }
}

/// Why a program could not be started, and the exit code for that.
fn not_started(error: &io::Error) -> (String, u8) {
    match error.kind() {
        io::ErrorKind::NotFound => ("program not found: check its name and PATH".to_owned(), NOT_FOUND),
        io::ErrorKind::PermissionDenied => {
            let why = "it is not executable: run `chmod +x` on it, or name the program that runs it";
            (why.to_owned(), NOT_EXECUTABLE)
        }
        _ => (error.to_string(), NOT_EXECUTABLE),
    }
}

/// The exit code of a program, as shells give it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| processes::signal(status).map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Whether a program ended because it was interrupted.
pub fn was_interrupted(status: ExitStatus) -> bool {
    processes::signal(status) == Some(INTERRUPT) || status.code() == Some(128 + INTERRUPT)
}

/// A program with its arguments, each in quotes, and nothing in them that a terminal or a reader takes for something else.
pub fn shown_program<S: AsRef<OsStr>>(program: &[S]) -> String {
    let word = |word: &S| format!("\"{}\"", word.as_ref().to_string_lossy().escape_debug());
    program.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The key of a program's permissions: its name if it is found in `PATH`, or else its path. So a program in a project does
/// not inherit the permissions of a known one with the same name.
pub fn known_as(program: &OsStr) -> String {
    let path = Path::new(program);
    if path.components().count() <= 1 {
        return program.to_string_lossy().into_owned();
    }
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

/// The name of a program without its folder.
pub fn base_name(program: &OsStr) -> String {
    let name = Path::new(program).file_name().unwrap_or(program);
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_a_project_is_known_by_its_path() {
        assert_eq!(known_as(OsStr::new("claude")), "claude");
        assert!(known_as(OsStr::new("./claude")).ends_with("/claude"));
    }
}
