//! A run in a process of its own: started by another one, which leaves when the tree has started. What it says after that is
//! in a file beside its journal.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::system::private_files;

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
    let log = private_files::create(&log_of(folder))?;
    setsid()?;
    dup2_stdin(nothing()?)?;
    dup2_stderr(&log)?;
    Ok(())
}

/// Leaves the output, which the process that started this one reads until it knows enough.
pub fn leave_output() -> io::Result<()> {
    Ok(dup2_stdout(nothing()?)?)
}

fn nothing() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}
