//! The program port: starts the program of an agent in the agent's box, once, and waits for its end.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::port::Pending;
use crate::port::tool::{ToolAnswer, ToolAttempt};
use crate::primitives::{AgentId, SessionId};
use crate::record::NoSession;

/// Starts the programs of the agents of one tree.
pub trait ProgramStarter: Send + Sync {
    /// Runs a program to its end. Dropping the future ends everything that it started.
    ///
    /// The error says why it was not started.
    fn run(&self, order: ProgramAttempt) -> Pending<Result<ProgramAnswer, String>>;

    /// Copies the files of the session of a program that has ended to where the program of another agent finds them.
    ///
    /// The error says why that begins anew; then it has none of the files.
    fn copy_session(&self, order: SessionCopy) -> Pending<Result<(), NoSession>>;
}

/// A session with what its files are copied for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionCopy {
    /// The agent that continues in it.
    pub attempt: ToolAttempt,
    /// The agent of the same tree whose program named it.
    pub from: AgentId,
    pub session: SessionId,
    pub store: SessionStore,
}

/// Where a program keeps its sessions. The names of their files end with the session, but for `.jsonl`.
#[derive(Clone, Copy, Debug)]
pub struct SessionStore {
    /// Below its home.
    pub folder: &'static str,
    /// How many folders in each other are below that, until the files.
    pub levels: usize,
    /// The name of the first of them, if that comes from the folder in which the program begins.
    pub first: Option<fn(&Path) -> String>,
}

impl SessionCopy {
    #[must_use]
    pub const fn new(attempt: ToolAttempt, from: AgentId, session: SessionId, store: SessionStore) -> Self {
        Self { attempt, from, session, store }
    }
}

/// A program with everything that it is started with.
#[non_exhaustive]
pub struct ProgramAttempt {
    /// The agent that it is, with its rights, its folder and its box.
    pub attempt: ToolAttempt,
    /// The program and its arguments.
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    /// The port of this machine to which its model calls go. It finds the gateway at the same address.
    pub gateway_port: u16,
    /// Its file, if that is not what its name finds in the box.
    pub file: Option<PathBuf>,
    /// What of its installation is not the system's.
    pub installation: Vec<InstalledPath>,
    /// Gets what it prints to its standard output as it comes.
    pub on_output: OnOutput,
}

/// A path that a program reads and runs, and where it is in the box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledPath {
    pub from: PathBuf,
    pub at: PathBuf,
}

/// Reads a piece of output.
pub type OnOutput = Box<dyn FnMut(&[u8]) + Send>;

impl ProgramAttempt {
    #[must_use]
    pub fn new(attempt: ToolAttempt, arguments: Vec<OsString>, gateway_port: u16) -> Self {
        let (environment, file, installation) = (Vec::new(), None, Vec::new());
        Self {
            attempt,
            arguments,
            environment,
            gateway_port,
            file,
            installation,
            on_output: Box::new(|_| ()),
        }
    }

    #[must_use]
    pub fn with_environment(mut self, environment: Vec<(OsString, OsString)>) -> Self {
        self.environment = environment;
        self
    }

    #[must_use]
    pub fn with_installation(mut self, file: Option<PathBuf>, installation: Vec<InstalledPath>) -> Self {
        (self.file, self.installation) = (file, installation);
        self
    }

    #[must_use]
    pub fn with_output(mut self, on_output: OnOutput) -> Self {
        self.on_output = on_output;
        self
    }
}

impl fmt::Debug for ProgramAttempt {
    /// Without its environment, which has a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramAttempt").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

/// What is left of a program that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramAnswer {
    /// What it printed, bounded at its beginning and its end.
    pub stdout: String,
    /// The end of what it printed to its standard error.
    pub stderr: String,
    /// How it ended, with the files that it left; its text is what a person has to know beside the output.
    pub end: ToolAnswer,
}

impl ProgramAnswer {
    #[must_use]
    pub const fn new(stdout: String, stderr: String, end: ToolAnswer) -> Self {
        Self { stdout, stderr, end }
    }
}
