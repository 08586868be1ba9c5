//! A program of a person in a box.

use std::ffi::OsString;
use std::path::PathBuf;

use super::order::TerminalOrder;
use crate::processes::StandardStreams;

/// Open files of a program, if its user has no higher limit.
const OPEN_FILES: u64 = 1_024;

/// A program that a person works with: its streams are handed in, it has no timeout, and it may begin sessions.
#[derive(Debug)]
pub struct BoxedProgram {
    /// The program, looked for in `PATH` unless it has a `/`, and its arguments.
    pub(super) arguments: Vec<OsString>,
    pub(super) file: Option<PathBuf>,
    pub(super) folder: PathBuf,
    pub(super) streams: StandardStreams,
    pub(super) umask: u32,
    pub(super) open_files: u64,
    pub(super) terminal: Option<TerminalOrder>,
}

impl BoxedProgram {
    /// Begins in a folder, with these streams.
    #[must_use]
    pub const fn new(arguments: Vec<OsString>, folder: PathBuf, streams: StandardStreams) -> Self {
        Self { arguments, file: None, folder, streams, umask: 0o022, open_files: OPEN_FILES, terminal: None }
    }

    /// Runs this file, under the name that the arguments begin with.
    #[must_use]
    pub fn with_file(mut self, file: Option<PathBuf>) -> Self {
        self.file = file;
        self
    }

    /// Which rights new files do not have.
    #[must_use]
    pub const fn with_umask(mut self, umask: u32) -> Self {
        self.umask = umask;
        self
    }

    /// The limit of open files of each of its processes.
    #[must_use]
    pub const fn with_open_files(mut self, open_files: u64) -> Self {
        self.open_files = open_files;
        self
    }

    /// Makes a terminal of this size in the box. It takes the place of these streams, and controls the program.
    #[must_use]
    pub const fn with_terminal(mut self, (columns, rows): (u16, u16), streams: [bool; 3]) -> Self {
        self.terminal = Some(TerminalOrder { rows, columns, streams });
        self
    }
}
