//! What was left out of a packet, in short: a line for each step, as far as there is room. Failures stay longest,
//! because whoever forgets them tries the same again.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::{Message, ToolAsk};
use crate::body::cut;
use crate::input::By;
use crate::offload::FOLDER;

/// Longest line of a step that went well, in bytes.
const LINE_BYTES_MAX: usize = 120;
/// Longest line of a failure, in bytes.
const FAILURE_BYTES_MAX: usize = 400;
/// Longest arguments in a line, in bytes.
const ARGS_BYTES_MAX: usize = 48;
/// The most bytes of what stands above the lines.
const HEAD_BYTES_MAX: usize = 64;

/// What was left out of a packet, in short.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    lines: VecDeque<Line>,
    /// Bytes of all lines.
    bytes: usize,
    /// Steps that have no line any more.
    omitted: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    text: String,
    worth: Worth,
}

/// How long a line stays, the shortest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Step,
    /// It names a file that nothing else does.
    File,
    Failure,
}

impl Folded {
    /// Adds messages that are left out from now on, the oldest first, and keeps to so many bytes.
    pub(super) fn add(&mut self, messages: &[Arc<Message>], bytes_max: usize) {
        let mut asks: &[ToolAsk] = &[];
        for message in messages {
            match message.as_ref() {
                Message::Said { body, asks: asked } if asked.is_empty() => {
                    self.push(format!("- you said: {}", short(&body.text, LINE_BYTES_MAX)), Worth::Step);
                }
                Message::Said { asks: asked, .. } => asks = asked,
                Message::Result { id, tool, text, is_error, along } => {
                    let file = along.as_ref().and_then(|along| along.file.as_ref());
                    let args = asks.iter().find(|ask| ask.id == *id).map_or("", |ask| &ask.args);
                    let args = short(args, ARGS_BYTES_MAX);
                    let bytes = file.map_or(text.len() as u64, |file| file.bytes);
                    let place = file.map_or_else(String::new, |file| format!(" in {FOLDER}/{}", file.name));
                    let place = place + &parts(message);
                    let line = if *is_error {
                        format!("- {tool} {args} failed: {}{place}", short(text, FAILURE_BYTES_MAX))
                    } else {
                        format!("- {tool} {args}: {bytes} bytes{place}")
                    };
                    let worth = match (is_error, file) {
                        (true, _) => Worth::Failure,
                        (false, Some(_)) => Worth::File,
                        (false, None) => Worth::Step,
                    };
                    self.push(line, worth);
                }
                Message::Heard { from, text, .. } => {
                    let who = match from {
                        By::Person => "a person",
                        By::Agent(agent) => agent.as_str(),
                    };
                    let text = short(text, LINE_BYTES_MAX);
                    self.push(format!("- {who} wrote: {text}{}", parts(message)), Worth::Step);
                }
                Message::Told { from, message } => {
                    let text = short(&message.text(), LINE_BYTES_MAX);
                    self.push(format!("- {from} knows: {text}{}", parts(message)), Worth::Step);
                }
                Message::Note(text) => {
                    self.push(format!("- note: {}", short(text, LINE_BYTES_MAX)), Worth::Step);
                }
                Message::System(_) | Message::Folded(_) => {}
            }
        }
        self.keep_to(bytes_max.saturating_sub(HEAD_BYTES_MAX));
    }

    /// How many steps are told or omitted.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.lines.len() + self.omitted as usize
    }

    fn push(&mut self, text: String, worth: Worth) {
        self.bytes += text.len() + 1;
        self.lines.push_back(Line { text, worth });
    }

    /// Omits the oldest steps that went well, then those with a file, then failures.
    fn keep_to(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max {
            let places = self.lines.iter().enumerate();
            let Some((place, _)) = places.min_by_key(|(_, line)| line.worth) else { return };
            let Some(line) = self.lines.remove(place) else { return };
            self.bytes -= line.text.len() + 1;
            self.omitted += 1;
        }
    }
}

impl fmt::Display for Folded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Earlier steps in short ({} more omitted):", self.omitted)?;
        self.lines.iter().try_for_each(|line| write!(f, "\n{}", line.text))
    }
}

/// How many images and files a message has, if it has some.
fn parts(message: &Message) -> String {
    match message.parts().count() {
        0 => String::new(),
        1 => " with 1 part".to_owned(),
        count => format!(" with {count} parts"),
    }
}

/// A text on one line, cut to so many bytes.
fn short(text: &str, bytes_max: usize) -> String {
    let line = cut(text, bytes_max).replace(['\n', '\r'], " ");
    if line.len() < text.len() { format!("{line}…") } else { line }
}
