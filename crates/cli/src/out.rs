//! Where words go: results and events to standard output, everything else to standard error. A reader that goes away
//! is an error to handle and never a panic.

use std::io::{self, Write};

/// Standard output could not be written.
#[derive(Debug)]
pub(crate) struct Unwritten(io::Error);

impl Unwritten {
    /// Whether whoever read it went away.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

impl std::fmt::Display for Unwritten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write to standard output: {}", self.0)
    }
}

impl std::error::Error for Unwritten {}

/// Writes a line to standard output, at once.
pub(crate) fn line(text: &str) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n"));
    written.and_then(|()| out.flush()).map_err(Unwritten)
}

/// Writes a line to standard error. If nobody reads that, there is nobody to tell.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says on standard error what went wrong.
pub(crate) fn complain(text: &str) {
    note(&format!("spinney: {text}"));
}

/// Writes to standard error and stays on the line, as one does before somebody types.
pub(crate) fn prompt(text: &str) {
    let mut err = io::stderr().lock();
    let _ = write!(err, "{text}").and_then(|()| err.flush());
}
