//! Output: results and events go to standard output, everything else to standard error. A reader that goes away is an
//! error to handle and never a panic.
//!
//! Everything that we print passes through here, including all text from models, tools, files and names. So the one
//! filter is here ([`inert`]): no text moves the cursor, changes a title or a clipboard, or looks like other output.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use spinney_view::wording::is_hostile;

use super::mode;
use super::paint::{Ink, Row, width_of, wrapped};
use super::region;
use crate::terminal::{self, Stream, Terminal};

/// Bytes of several rows that are written together.
const WRITTEN_BYTES: usize = 8 * 1_024;

#[derive(Debug)]
pub(crate) struct Unwritten(io::Error);

impl Unwritten {
    /// Whether the reader is gone.
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

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

/// Whether each character takes one byte and one column. Nearly every text is like that, and this is quick to find out.
pub(crate) fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Escapes every hostile character, as `\u{202e}`: visible, and without effect.
pub(crate) fn inert(text: &str) -> Cow<'_, str> {
    if is_printable_ascii(text) {
        return Cow::Borrowed(text);
    }
    escaped(text, |inert, c| {
        let _ = write!(inert, "\\u{{{:x}}}", u32::from(c));
    })
}

fn escaped(text: &str, write: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let Some(first) = text.find(is_hostile) else { return Cow::Borrowed(text) };
    let (before, rest) = text.split_at(first);
    let mut all = before.to_owned();
    for c in rest.chars() {
        if is_hostile(c) {
            write(&mut all, c);
        } else {
            all.push(c);
        }
    }
    Cow::Owned(all)
}

/// Writes one or more lines to standard output, unbuffered. A terminal gets them wrapped between words.
pub(crate) fn line(text: &str) -> Result<(), Unwritten> {
    write_line(&fitted(&inert(text), terminal::width_of_output()))
}

/// Writes text to standard output as it is, for programs as much as for people: it is inert, but never wrapped.
pub(crate) fn verbatim(text: &str) -> Result<(), Unwritten> {
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
pub(crate) fn row(row: &Row, terminal: Terminal) -> Result<(), Unwritten> {
    write_line(&row.painted(terminal.colour))
}

/// Writes rows to standard output, many at once.
pub(crate) fn rows(rows: impl IntoIterator<Item = Row>, terminal: Terminal) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    let mut text = String::new();
    for row in rows {
        row.paint(terminal.colour, &mut text);
        text.push('\n');
        if text.len() >= WRITTEN_BYTES {
            out.write_all(text.as_bytes()).map_err(Unwritten)?;
            text.clear();
        }
    }
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Unwritten)
}

/// Writes a text to standard output, wrapped between words where the terminal ends; further lines are indented.
pub(crate) fn text(ink: Ink, text: &str, indent: usize, terminal: Terminal) -> Result<(), Unwritten> {
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
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Unwritten> {
    io::stdout().lock().write_all(bytes).map_err(Unwritten)
}

/// Writes lines above a live view as they are, but inert: the terminal breaks what is too long.
pub(crate) fn lines_above(text: &str, stream: Stream) -> Result<(), Unwritten> {
    let mut lines = String::new();
    for line in text.lines() {
        lines += &inert(line);
        lines.push('\n');
    }
    Ok(region::above(|| stream.write(lines.as_bytes()))?)
}

/// Writes one line of JSON to standard output, unbuffered. Its value does not change: hostile characters occur only
/// in strings, where JSON has escapes for them.
pub(crate) fn json(text: &str) -> Result<(), Unwritten> {
    write_line(&json_escaped(text))
}

/// The same below the output of a program, whose last line may have no end.
pub(crate) fn json_below(text: &str) -> Result<(), Unwritten> {
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
    written.and_then(|()| out.flush()).map_err(Unwritten)
}

/// Writes a line to standard error. A failure is ignored: there is no other place to report it.
pub(crate) fn note(text: &str) {
    region::above(|| {
        let text = fitted(&inert(text), terminal::width_of_errors()).into_owned() + "\n";
        // The terminal adds none while a program in a box has the keyboard.
        let text = if mode::is_raw() { text.replace('\n', "\r\n") } else { text };
        let _ = io::stderr().lock().write_all(text.as_bytes());
    });
}

/// Begins a line below the output of a program, whose last line may have no end, if standard error is a terminal: in a file
/// the two are not one text.
pub(crate) fn below_a_program() {
    if terminal::width_of_errors().is_some() {
        note("");
    }
}

/// Writes an error to standard error. Further lines are indented, so a name with a line break cannot imitate
/// another message.
pub(crate) fn complain(text: &str) {
    let mut lines = text.split('\n');
    let mut all = format!("spinney: {}", lines.next().unwrap_or_default());
    for line in lines {
        let indent = if line.is_empty() || line.starts_with(' ') { "" } else { "  " };
        let _ = write!(all, "\n{indent}{line}");
    }
    note(&all);
}

/// Writes a question to standard error, with a prompt for the answer.
pub(crate) fn prompt(question: &str) {
    let question = fitted_question(&inert(question), terminal::width_of_errors());
    let mut err = io::stderr().lock();
    let _ = write!(err, "{question}\n> ").and_then(|()| err.flush());
}

/// Writes a question above a live view.
pub(crate) fn question_above(question: &str, stream: Stream) -> Result<(), Unwritten> {
    let question = fitted_question(&inert(question), Some(stream.size().0)) + "\n";
    Ok(region::above(|| stream.write(question.as_bytes()))?)
}

/// Indented lines are values to approve: broken into lines of our own, one value could look like two.
fn fitted_question(text: &str, width: Option<usize>) -> String {
    let fit = |line| if str::starts_with(line, ' ') { Cow::Borrowed(line) } else { fitted(line, width) };
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(fit).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_terminal_acts_on_is_written_out() {
        assert_eq!(inert("plain, ünïcode and 木\n\t"), "plain, ünïcode and 木\n\t");
        assert_eq!(inert("a\u{1b}[2J\r\u{9b}\u{7f}b"), "a\\u{1b}[2J\\u{d}\\u{9b}\\u{7f}b");
        let unseen = ['\u{202e}', '\u{2066}', '\u{200e}', '\u{61c}', '\u{2028}', '\u{200b}', '\u{feff}'];
        for c in unseen.into_iter().chain(['\u{200d}', '\u{2060}', '\u{e0041}']) {
            assert_eq!(inert(&format!("<{c}>")), format!("<\\u{{{:x}}}>", u32::from(c)));
        }
    }
}
