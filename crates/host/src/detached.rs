//! A run in a process of its own: started by another one, which leaves when the tree has started. What it says after that is
//! in a file beside its journal.

use std::io;
use std::path::{Path, PathBuf};

use crate::system::{private_files, session};

/// What a detached process says, in the folder of its journal.
const LOG: &str = "detached.log";

/// Where a process that runs a tree of this journal says what goes wrong.
#[must_use]
pub fn log_of(folder: &Path) -> PathBuf {
    folder.join(LOG)
}

/// Leaves the terminal and the session of the process that started this one. From now on nothing is read, and what goes
/// wrong is written into the log.
pub fn leave_terminal(folder: &Path) -> io::Result<()> {
    session::leave_terminal(&private_files::create(&log_of(folder))?)
}

/// Leaves the output, which the process that started this one reads until it knows enough.
pub fn leave_output() -> io::Result<()> {
    session::leave_output()
}
