//! The lines at the bottom of the terminal that are drawn over themselves. Everything else that is printed meanwhile
//! goes above them: [`above`] takes them away and puts them back.
//!
//! Nothing is asked of the terminal and no mode of it is changed for longer than one write, so a process that is killed
//! leaves nothing to repair.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::out::Unwritten;
use crate::paint::Row;
use crate::terminal::{Stream, Terminal};

/// What is on the terminal now. There is one terminal for the whole process.
static REGION: Mutex<Region> = Mutex::new(Region { stream: Stream::Output, lines: Vec::new() });

struct Region {
    /// Where the terminal is reached.
    stream: Stream,
    lines: Vec<Drawn>,
}

struct Drawn {
    painted: String,
    width: usize,
}

/// Begins and ends a change that the terminal shows at once, if it can.
const SYNCHRONISED: (&str, &str) = ("\u{1b}[?2026h", "\u{1b}[?2026l");
/// Lines that turn out too wide are cut by the terminal, and do not push the others down.
const WITHOUT_WRAPPING: (&str, &str) = ("\u{1b}[?7l", "\u{1b}[?7h");
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

/// Draws these lines in place of those that are there.
pub(crate) fn draw(rows: &[Row], terminal: Terminal) -> Result<(), Unwritten> {
    let Terminal { stream, colour, .. } = terminal;
    let new: Vec<Drawn> =
        rows.iter().map(|row| Drawn { painted: row.painted(colour), width: row.width() }).collect();
    let mut region = region();
    let Region { lines: old, .. } = &*region;
    if old.len() == new.len() && old.iter().zip(&new).all(|(old, new)| old.painted == new.painted) {
        return Ok(());
    }
    stream.write(frame(old, &new, stream.size().0).as_bytes())?;
    *region = Region { stream, lines: new };
    Ok(())
}

/// Runs what prints, with the lines taken away meanwhile.
pub(crate) fn above<T>(print: impl FnOnce() -> T) -> T {
    // A thread that panics while it draws must not wait for itself.
    if std::thread::panicking() {
        return print();
    }
    let region = region();
    let Region { stream, lines } = &*region;
    if lines.is_empty() {
        return print();
    }
    let columns = stream.size().0;
    // If the terminal is gone, whoever draws next reports it.
    let _ = stream.write(frame(lines, &[], columns).as_bytes());
    let printed = print();
    let _ = stream.write(frame(&[], lines, columns).as_bytes());
    printed
}

fn region() -> MutexGuard<'static, Region> {
    REGION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What to write to get from the old lines to the new ones, with the cursor below them before and after. The old ones
/// may have been wrapped since, because the terminal became narrower.
fn frame(old: &[Drawn], new: &[Drawn], columns: usize) -> String {
    let lines: usize = old.iter().map(|line| line.width.div_ceil(columns.max(1)).max(1)).sum();
    let mut text = format!("{}{}\r", SYNCHRONISED.0, WITHOUT_WRAPPING.0);
    if lines > 0 {
        let _ = write!(text, "\u{1b}[{lines}A");
    }
    for line in new {
        text += &line.painted;
        text += CLEAR_LINE;
        text += "\r\n";
    }
    text + CLEAR_BELOW + WITHOUT_WRAPPING.1 + SYNCHRONISED.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_drawn_over_the_one_before_however_the_terminal_wrapped_it() {
        let line = |text: &str| Drawn { painted: text.to_owned(), width: text.len() };
        let old = [line("0123456789"), line("")];
        let same = frame(&old, &[line("new")], 80);
        assert!(same.contains("\r\u{1b}[2Anew\u{1b}[K\r\n\u{1b}[J"), "{same:?}");
        // At six columns the first line takes two.
        assert!(frame(&old, &[], 6).contains("\r\u{1b}[3A\u{1b}[J"));
        assert!(!frame(&[], &[line("new")], 80).contains('A'));
    }
}
