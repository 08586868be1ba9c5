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

/// Leaves the terminal and the session of the process that started this one. From now on nothing is read, and only what
/// goes wrong is written, into the log.
pub fn detach(folder: &Path) -> io::Result<()> {
    let log = private_files::create(&log_of(folder))?;
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    setsid()?;
    dup2_stdin(&nothing)?;
    dup2_stderr(&log)?;
    // Last: its end tells the process that started this one that all of this is done.
    dup2_stdout(&nothing)?;
    Ok(())
}
