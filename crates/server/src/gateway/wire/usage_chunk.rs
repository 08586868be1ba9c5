//! Removes the chunk with the usage from a stream of chat completions: the program did not ask for it, we did. All other
//! bytes pass as they are, wherever the chunks of the connection are split.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::bounds::HELD_EVENT_BYTES_MAX;

/// Takes the bytes of a stream and gives those that pass. An event is held back until it ends.
#[derive(Debug, Default)]
pub(super) struct UsageChunkFilter {
    /// The bytes of the event so far.
    held: Vec<u8>,
    /// How many bytes the line has that has not ended.
    line: usize,
    /// Whether the event is too large to be the usage, so its bytes pass as they come.
    is_passing: bool,
    /// The last byte was CR: LF after it belongs to the same line end.
    after_cr: Option<LineFeed>,
}

/// What becomes of LF after CR.
#[derive(Clone, Copy, Debug)]
enum LineFeed {
    /// It is in the middle of an event.
    Held,
    Passes,
    Removed,
}

/// A chunk that has usage and nothing else to say.
#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<IgnoredAny>>,
    usage: Option<BTreeMap<String, IgnoredAny>>,
    error: Option<IgnoredAny>,
}

impl UsageChunkFilter {
    pub(super) fn feed(&mut self, mut bytes: &[u8], pass: &mut Vec<u8>) {
        while let Some(first) = bytes.first() {
            if let Some(line_feed) = self.after_cr.take().filter(|_| *first == b'\n') {
                match line_feed {
                    LineFeed::Held => self.keep(&bytes[..1], pass),
                    LineFeed::Passes => pass.push(b'\n'),
                    LineFeed::Removed => {}
                }
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line += bytes.len();
                self.keep(bytes, pass);
                return;
            };
            let (line, rest) = bytes.split_at(end + 1);
            let is_empty = std::mem::take(&mut self.line) + end == 0;
            self.keep(line, pass);
            let line_feed = if is_empty { self.end_event(pass) } else { LineFeed::Held };
            self.after_cr = (line[end] == b'\r').then_some(line_feed);
            bytes = rest;
        }
    }

    /// What was held back of an event that the stream did not end.
    pub(super) fn finish(self) -> Vec<u8> {
        self.held
    }

    fn keep(&mut self, bytes: &[u8], pass: &mut Vec<u8>) {
        if !self.is_passing && bytes.len() > HELD_EVENT_BYTES_MAX.saturating_sub(self.held.len()) {
            self.is_passing = true;
            pass.append(&mut self.held);
        }
        let to = if self.is_passing { pass } else { &mut self.held };
        to.extend_from_slice(bytes);
    }

    fn end_event(&mut self, pass: &mut Vec<u8>) -> LineFeed {
        if std::mem::take(&mut self.is_passing) {
            return LineFeed::Passes;
        }
        let event = std::mem::take(&mut self.held);
        if !is_usage(&event) {
            pass.extend_from_slice(&event);
            return LineFeed::Passes;
        }
        // A comment in the same event is not ours to remove. It stays, with the empty line behind it.
        let is_kept = |line: &&[u8]| data(line).is_none() && !without_end(line).is_empty();
        if lines(&event).any(|line| is_kept(&line)) {
            pass.extend(lines(&event).filter(|line| data(line).is_none()).flatten());
            return LineFeed::Passes;
        }
        LineFeed::Removed
    }
}

fn is_usage(event: &[u8]) -> bool {
    let mut whole = Vec::new();
    for line in lines(event).filter_map(data) {
        whole.extend_from_slice(line);
        whole.push(b'\n');
    }
    // A list would be read as the fields in their order.
    let is_object = whole.trim_ascii_start().starts_with(b"{");
    is_object
        && serde_json::from_slice::<Chunk>(&whole).is_ok_and(|chunk| {
            chunk.usage.is_some()
                && chunk.error.is_none()
                && chunk.choices.is_none_or(|choices| choices.is_empty())
        })
}

/// The lines of an event, with their ends.
fn lines(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = event;
    std::iter::from_fn(move || {
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
        let end = end + if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        let (line, after) = rest.split_at(end);
        rest = after;
        Some(line)
    })
}

/// The data of a line that has some.
fn data(line: &[u8]) -> Option<&[u8]> {
    let line = without_end(line);
    let value = line.strip_prefix(b"data:").or((line == b"data").then_some(b"".as_slice()))?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

fn without_end(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(line.len());
    &line[..end]
}
