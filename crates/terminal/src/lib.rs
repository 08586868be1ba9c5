//! The terminal of a person: what standard output and standard error are, what is drawn there, and what is typed.

pub mod inert;
pub mod key_reader;
pub mod keyboard;
pub mod keys;
pub mod mode;
pub mod money;
pub mod out;
pub mod paint;
pub mod question;
pub mod reader;
pub mod reflow;
pub mod region;
pub mod relay;
pub mod table;
pub mod unwritten;

use std::io::{self, IsTerminal, Write as _, stderr, stdout};
use std::os::fd::AsFd;

use rustix::process::Signal as ProcessSignal;
use rustix::termios::tcgetwinsize;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::paint::Paint;

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

/// Below this, text is wrapped as if there were more room.
const WIDTH_MIN: usize = 40;
/// A terminal that does not tell its size.
const ASSUMED: (usize, usize) = (80, 24);

/// Comes when this process continues after it was stopped at the terminal.
pub fn continued() -> io::Result<Signal> {
    signal(SignalKind::from_raw(ProcessSignal::CONT.as_raw()))
}

/// Where something is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stream {
    #[default]
    Output,
    Errors,
}

impl Stream {
    fn is_terminal(self) -> bool {
        match self {
            Self::Output => stdout().is_terminal(),
            Self::Errors => stderr().is_terminal(),
        }
    }

    /// Columns and lines of its terminal, as it is now.
    pub fn size(self) -> (usize, usize) {
        let size = match self {
            Self::Output => tcgetwinsize(stdout()),
            Self::Errors => tcgetwinsize(stderr()),
        };
        let size = size.ok().map(|size| (size.ws_col.into(), size.ws_row.into()));
        size.filter(|(columns, lines)| *columns > 0 && *lines > 0).unwrap_or(ASSUMED)
    }

    pub fn write(self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Output => {
                let mut out = stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Self::Errors => stderr().lock().write_all(bytes),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    pub stream: Stream,
    pub is_terminal: bool,
    pub paint: Paint,
    /// `None` if lines may have any length: the output is a file or a pipe.
    pub width: Option<usize>,
}

impl Terminal {
    pub fn of_output(colour: Colours) -> Self {
        Self::new(Stream::Output, colour)
    }

    /// A stream, as it is now. `COLUMNS` sets the width of output that goes elsewhere.
    #[expect(clippy::disallowed_methods, reason = "people set these variables for all programs")]
    pub fn new(stream: Stream, colour: Colours) -> Self {
        let is_terminal = stream.is_terminal();
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let width = match (is_terminal, columns) {
            (true, _) => Some(stream.size().0),
            (false, columns) => columns,
        };
        Self {
            stream,
            is_terminal,
            paint: match colour {
                Colours::Always => Paint::Coloured,
                Colours::Auto if is_terminal && !set("NO_COLOR") && !is_dumb => Paint::Coloured,
                Colours::Auto | Colours::Never => Paint::Plain,
            },
            width: width.map(|width| width.max(WIDTH_MIN)),
        }
    }

    /// Whether rows can be drawn over one another.
    #[expect(clippy::disallowed_methods, reason = "people set this variable for all programs")]
    pub fn can_draw(self) -> bool {
        self.is_terminal && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }
}

/// The width of standard output, if it is a terminal.
pub fn width_of_output() -> Option<usize> {
    let output = stdout();
    output.is_terminal().then(|| columns(&output))
}

/// The width of standard error, if it is a terminal.
pub fn width_of_errors() -> Option<usize> {
    let errors = stderr();
    errors.is_terminal().then(|| columns(&errors))
}

fn columns(terminal: &impl AsFd) -> usize {
    let columns = tcgetwinsize(terminal).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { ASSUMED.0 } else { columns.max(WIDTH_MIN) }
}
