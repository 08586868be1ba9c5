//! Output: results and events go to standard output, everything else to standard error. A reader that goes away is an
//! error to handle and never a panic.
//!
//! Everything that we print passes through here and is made [`inert`], including all text from models, tools, files and
//! names.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

pub use crate::inert::inert;
pub use crate::unwritten::Unwritten;

use crate::inert::escaped;
use crate::paint::{Ink, Row, width_of, wrapped};
use crate::{Stream, Terminal, mode, region, width_of_errors, width_of_output};

/// Bytes of several rows that are written together.
const WRITTEN_BYTES: usize = 8 * 1_024;

/// Writes one or more lines to standard output, unbuffered. A terminal gets them wrapped between words.
pub fn line(text: &str) -> Result<(), Unwritten> {
    write_line(&fitted(&inert(text), width_of_output()))
}

/// Writes text to standard output as it is, for programs as much as for people: it is inert, but never wrapped.
pub fn verbatim(text: &str) -> Result<(), Unwritten> {
    write_line(&inert(text))
}

fn fitted(text: &str, width: Option<usize>) -> Cow<'_, str> {
    match width {
        Some(width) if text.lines().any(|line| width_of(line) > width) => {
            wrapped(text, width).join("\n").into()
        }
        Some(_) | None => Cow::Borrowed(text),
    }
}

/// Writes a row to standard output, unbuffered. Its text is inert already.
pub fn row(row: &Row, terminal: Terminal) -> Result<(), Unwritten> {
    write_line(&row.painted(terminal.paint))
}

/// Writes rows to standard output, many at once.
pub fn rows(rows: impl IntoIterator<Item = Row>, terminal: Terminal) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    let mut text = String::new();
    for row in rows {
        row.paint(terminal.paint, &mut text);
        text.push('\n');
        if text.len() >= WRITTEN_BYTES {
            out.write_all(text.as_bytes()).map_err(Unwritten::from)?;
            text.clear();
        }
    }
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Unwritten::from)
}

/// Writes a text to standard output, wrapped between words where the terminal ends; further lines are indented.
pub fn text(ink: Ink, text: &str, indent: usize, terminal: Terminal) -> Result<(), Unwritten> {
    let text = inert(text);
    let Some(width) = terminal.width else { return row(&Row::inked(ink, &text), terminal) };
    // The first line is wrapped like the others, so one width fits all; its own beginning is put back.
    let split = text.floor_char_boundary(indent);
    let (head, rest) = if split == indent { text.split_at(split) } else { ("", text.as_ref()) };
    for (at, line) in wrapped(rest, width.saturating_sub(indent).max(1)).iter().enumerate() {
        let before = if at == 0 { head.to_owned() } else { " ".repeat(indent) };
        row(&Row::inked(ink, &(before + line)), terminal)?;
    }
    Ok(())
}

/// Writes bytes to standard output as they are. Only for output that is not a terminal.
pub fn bytes(bytes: &[u8]) -> Result<(), Unwritten> {
    io::stdout().lock().write_all(bytes).map_err(Unwritten::from)
}

/// Writes part of a line to standard output: inert, and flushed.
pub fn piece(text: &str) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    out.write_all(inert(text).as_bytes()).and_then(|()| out.flush()).map_err(Unwritten::from)
}

/// Writes lines above a live view as they are, but inert: the terminal breaks what is too long.
pub fn lines_above(text: &str, stream: Stream) -> Result<(), Unwritten> {
    let mut lines = String::new();
    for line in text.lines() {
        lines += &inert(line);
        lines.push('\n');
    }
    Ok(region::above(|| stream.write(lines.as_bytes()))?)
}

/// Writes one line of JSON to standard output, unbuffered. Its value does not change: hostile characters occur only
/// in strings, where JSON has escapes for them.
pub fn json(text: &str) -> Result<(), Unwritten> {
    write_line(&json_escaped(text))
}

/// The same below the output of a program, whose last line may have no end.
pub fn json_below(text: &str) -> Result<(), Unwritten> {
    write_line(&format!("\n{}", json_escaped(text)))
}

fn json_escaped(text: &str) -> Cow<'_, str> {
    escaped(text, |escaped, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    })
}

fn write_line(text: &str) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n"));
    written.and_then(|()| out.flush()).map_err(Unwritten::from)
}

/// Writes a line to standard error. A failure is ignored: there is no other place to report it.
pub fn note(text: &str) {
    region::above(|| {
        let text = fitted(&inert(text), width_of_errors()).into_owned() + "\n";
        // The terminal adds none while a program in a box has the keyboard.
        let text = if mode::is_raw() { text.replace('\n', "\r\n") } else { text };
        let _ = io::stderr().lock().write_all(text.as_bytes());
    });
}

/// Begins a line below the output of a program, whose last line may have no end, if standard error is a terminal: in a file
/// the two are not one text.
pub fn below_a_program() {
    if width_of_errors().is_some() {
        note("");
    }
}

/// Writes an error to standard error. Further lines are indented, so a name with a line break cannot imitate
/// another message.
pub fn complain(text: &str) {
    let mut lines = text.split('\n');
    let mut all = format!("spinney: {}", lines.next().unwrap_or_default());
    for line in lines {
        let indent = if line.is_empty() || line.starts_with(' ') { "" } else { "  " };
        let _ = write!(all, "\n{indent}{line}");
    }
    note(&all);
}

/// Writes a question to standard error, with a prompt for the answer.
pub fn prompt(question: &str) {
    let question = fitted_question(&inert(question), width_of_errors());
    let mut err = io::stderr().lock();
    let _ = write!(err, "{question}\n> ").and_then(|()| err.flush());
}

/// Writes a question above a live view.
pub fn question_above(question: &str, stream: Stream) -> Result<(), Unwritten> {
    let question = fitted_question(&inert(question), Some(stream.size().0)) + "\n";
    Ok(region::above(|| stream.write(question.as_bytes()))?)
}

/// Indented lines are values to approve: broken into lines of our own, one value could look like two.
fn fitted_question(text: &str, width: Option<usize>) -> String {
    let fit = |line| if str::starts_with(line, ' ') { Cow::Borrowed(line) } else { fitted(line, width) };
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(fit).collect();
    lines.join("\n")
}
