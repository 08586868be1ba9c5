//! The session and the standard streams of this process.

use std::fs::File;
use std::io;

use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

/// Leaves the session and its terminal. Nothing is read any more, and errors go into a file.
pub(crate) fn leave_terminal(errors: &File) -> io::Result<()> {
    setsid()?;
    dup2_stdin(nothing()?)?;
    dup2_stderr(errors)?;
    Ok(())
}

/// Leaves the output.
pub(crate) fn leave_output() -> io::Result<()> {
    Ok(dup2_stdout(nothing()?)?)
}

fn nothing() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}
