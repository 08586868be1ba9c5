//! The lines at the bottom of the terminal that are drawn over themselves. Everything else that is printed meanwhile
//! goes above them: [`above`] takes them away and puts them back.
//!
//! Nothing is asked of the terminal and no mode of it is changed for longer than one write, so a process that is killed
//! leaves nothing to repair.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::paint::Row;
use super::unwritten::Unwritten;
use super::{Stream, Terminal};

/// What is on the terminal now. There is one terminal for the whole process.
static REGION: Mutex<Region> =
    Mutex::new(Region { stream: Stream::Output, lines: Vec::new(), columns: 0, pushed_out: 0 });

struct Region {
    /// Where the terminal is reached.
    stream: Stream,
    lines: Vec<Drawn>,
    /// How wide the terminal was.
    columns: usize,
    /// Rows above them that the terminal pushed out of its screen, because it became lower. It may bring them back.
    pushed_out: usize,
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
const CLEAR_ROW_AND_DOWN: &str = "\u{1b}[2K\u{1b}[B";

/// Draws these lines in place of those that are there.
pub fn draw(rows: &[Row], terminal: Terminal) -> Result<(), Unwritten> {
    let Terminal { stream, paint, .. } = terminal;
    let new: Vec<Drawn> =
        rows.iter().map(|row| Drawn { painted: row.painted(paint), width: row.width() }).collect();
    let mut region = region();
    let Region { lines: old, columns: columns_before, pushed_out, .. } = &*region;
    let is_same = old.len() == new.len() && old.iter().zip(&new).all(|(old, new)| old.painted == new.painted);
    if is_same && *pushed_out == 0 {
        return Ok(());
    }
    let (columns, height) = stream.size();
    let rows = rows_of(old, columns) + pushed_out;
    let is_steady = columns == *columns_before && *pushed_out == 0 && !new.is_empty();
    let old = if is_steady { Old::Overwritten(rows) } else { Old::Cleared { rows, height } };
    stream.write(frame(old, &new).as_bytes())?;
    // The cursor does not get above the screen, and its own row is below the lines.
    *region = Region { stream, lines: new, columns, pushed_out: (rows + 1).saturating_sub(height) };
    Ok(())
}

/// Takes them away for good.
pub fn erase(terminal: Terminal) -> Result<(), Unwritten> {
    let erased = draw(&[], terminal);
    region().pushed_out = 0;
    erased
}

/// Leaves them where they are: others have written below them, so the next ones begin there.
pub fn abandon() {
    let mut region = region();
    region.lines.clear();
    region.pushed_out = 0;
}

/// Runs what prints, with the lines taken away meanwhile.
pub fn above<T>(print: impl FnOnce() -> T) -> T {
    // A thread that panics while it draws must not wait for itself.
    if std::thread::panicking() {
        return print();
    }
    let mut region = region();
    let Region { stream, lines, columns, pushed_out } = &mut *region;
    if lines.is_empty() && *pushed_out == 0 {
        return print();
    }
    let (now, height) = stream.size();
    *columns = now;
    let rows = rows_of(lines, now) + *pushed_out;
    // What is printed is above the lines now, and stays.
    *pushed_out = 0;
    // If the terminal is gone, the next draw reports it.
    let _ = stream.write(frame(Old::Cleared { rows, height }, &[]).as_bytes());
    let printed = print();
    let _ = stream.write(frame(Old::Overwritten(0), lines).as_bytes());
    printed
}

fn region() -> MutexGuard<'static, Region> {
    REGION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rows that lines take on a terminal that may have become narrower since: then it has wrapped them.
fn rows_of(lines: &[Drawn], columns: usize) -> usize {
    lines.iter().map(|line| line.width.div_ceil(columns.max(1)).max(1)).sum()
}

/// What is there before a frame.
#[derive(Clone, Copy)]
enum Old {
    /// So many rows. New lines are written over them, so nothing flickers.
    Overwritten(usize),
    /// So many rows, as far as they are on a screen of this height. Each is cleared on its own: some terminals remember which
    /// rows they have wrapped until then, and would join the new ones; and some keep what is cleared from the first row of
    /// the screen on.
    Cleared { rows: usize, height: usize },
}

/// What to write to get from the old rows to the new lines, with the cursor below them before and after.
fn frame(old: Old, new: &[Drawn]) -> String {
    let (Old::Overwritten(rows) | Old::Cleared { rows, .. }) = old;
    let mut text = format!("{}{}\r", SYNCHRONISED.0, WITHOUT_WRAPPING.0);
    if rows > 0 {
        let _ = write!(text, "\u{1b}[{rows}A");
    }
    if let Old::Cleared { rows, height } = old {
        // The cursor does not get above the screen.
        let on_screen = rows.min(height.saturating_sub(1));
        if on_screen > 0 {
            text += &CLEAR_ROW_AND_DOWN.repeat(on_screen);
            let _ = write!(text, "\u{1b}[{on_screen}A");
        }
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
        let same = frame(Old::Overwritten(rows_of(&old, 80)), &[line("new")]);
        assert!(same.contains("\r\u{1b}[2Anew\u{1b}[K\r\n\u{1b}[J"), "{same:?}");
        // At six columns the first line takes two, and a low terminal does not show the first of them.
        let erased = frame(Old::Cleared { rows: rows_of(&old, 6), height: 3 }, &[]);
        assert!(
            erased.contains("\r\u{1b}[3A\u{1b}[2K\u{1b}[B\u{1b}[2K\u{1b}[B\u{1b}[2A\u{1b}[J"),
            "{erased:?}"
        );
        assert!(!frame(Old::Overwritten(0), &[line("new")]).contains('A'));
    }
}
