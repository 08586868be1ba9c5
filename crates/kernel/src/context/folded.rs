//! The digest of messages left out of a packet: one line per step, as far as they fit. Failures stay longest, so that
//! the agent does not repeat them. If the agent's model wrote a summary, it comes first, and lines cover the rest.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::Message;
use crate::context::offload::FOLDER;
use crate::primitives::{Actor, Body, OutsiderKind, cut, limit};
use crate::record::ToolAsk;

/// Longest line of a successful step, in bytes.
const LINE_BYTES_MAX: usize = 120;
/// Longest line of a failure, in bytes.
const FAILURE_BYTES_MAX: usize = 400;
/// Longest arguments in a line, in bytes.
const ARGS_BYTES_MAX: usize = 48;
/// The most bytes of the heading.
const HEAD_BYTES_MAX: usize = 64;
/// The heading of a summary, and the mark of one that was cut.
const SUMMED: &str = "Earlier steps, summed up by you:";
const CUT: &str = "… (cut)";

/// The digest of messages left out of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    summary: Option<Summed>,
    lines: VecDeque<Line>,
    bytes: usize,
    /// Steps that no longer have a line.
    omitted: u32,
}

/// The summary by the agent's model.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Summed {
    text: String,
    tokens: usize,
    /// How many steps it covers.
    steps: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    text: String,
    worth: Worth,
}

/// How long a line stays; the first variants go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Step,
    /// It names a file that no other line names.
    File,
    Failure,
}

impl Folded {
    /// Adds messages that are now left out, oldest first, and keeps within `tokens_max`. Lines are counted in bytes,
    /// since no token is shorter.
    pub(super) fn add(&mut self, messages: &[Arc<Message>], tokens_max: usize) {
        for line in lines(messages) {
            self.bytes += line.text.len() + 1;
            self.lines.push_back(line);
        }
        let around = match &self.summary {
            Some(summed) => limit::SUMMARY_AROUND_TOKENS as usize + summed.tokens,
            None => HEAD_BYTES_MAX,
        };
        self.keep_to(tokens_max.saturating_sub(around));
    }

    /// Replaces the digest and these messages by a summary of both. A summary that is too long is cut, and says so.
    pub(super) fn sum_up(&mut self, body: &Body, messages: &[Arc<Message>], tokens_max: usize) {
        let steps = u32::try_from(self.steps() + lines(messages).count()).unwrap_or(u32::MAX);
        let text = body.text.trim();
        let tokens = usize::try_from(body.counted().bound()).unwrap_or(usize::MAX).min(text.len());
        let summed = if tokens <= tokens_max && body.rest().is_none() {
            Summed { text: text.to_owned(), tokens, steps }
        } else {
            let text = cut(text, tokens_max);
            Summed { tokens: text.len(), text: format!("{text}{CUT}"), steps }
        };
        *self = Self { summary: Some(summed), ..Self::default() };
    }

    #[must_use]
    pub fn summary(&self) -> Option<&str> {
        self.summary.as_ref().map(|summed| summed.text.as_str())
    }

    /// Steps with or without a line.
    #[must_use]
    pub fn steps(&self) -> usize {
        let summed = self.summary.as_ref().map_or(0, |summed| summed.steps);
        self.lines.len() + self.omitted as usize + summed as usize
    }

    /// Drops lines of the oldest successful steps, then those with a file, then failures.
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
        match &self.summary {
            Some(summed) => {
                write!(f, "{SUMMED}\n{}", summed.text)?;
                if self.lines.is_empty() && self.omitted == 0 {
                    return Ok(());
                }
                write!(f, "\nNot in it ({} more omitted):", self.omitted)?;
            }
            None => write!(f, "Earlier steps in short ({} more omitted):", self.omitted)?,
        }
        self.lines.iter().try_for_each(|line| write!(f, "\n{}", line.text))
    }
}

/// The number of a message's images and files, if it has any.
fn parts(message: &Message) -> String {
    match message.parts().count() {
        0 => String::new(),
        1 => " with 1 part".to_owned(),
        count => format!(" with {count} parts"),
    }
}

/// One line per step.
fn lines(messages: &[Arc<Message>]) -> impl Iterator<Item = Line> {
    let mut asks: &[ToolAsk] = &[];
    messages.iter().filter_map(move |message| {
        if let Message::Said { asks: asked, .. } = message.as_ref()
            && !asked.is_empty()
        {
            asks = asked;
            return None;
        }
        line(message, asks)
    })
}

fn line(message: &Message, asks: &[ToolAsk]) -> Option<Line> {
    let step = |text: String| Some(Line { text, worth: Worth::Step });
    match message {
        Message::Said { body, .. } => step(format!("- you said: {}", short(&body.text, LINE_BYTES_MAX))),
        Message::Result { id, tool, text, is_error, along } => {
            let file = along.as_ref().and_then(|along| along.file.as_ref());
            let args = asks.iter().find(|ask| *ask.id == **id).map_or("", |ask| &ask.args);
            let args = short(args, ARGS_BYTES_MAX);
            let bytes = file.map_or(text.len() as u64, |file| file.bytes);
            let place = file.map_or_else(String::new, |file| format!(" in {FOLDER}/{}", file.name));
            let place = place + &parts(message);
            let text = if *is_error {
                format!("- {tool} {args} failed: {}{place}", short(text, FAILURE_BYTES_MAX))
            } else {
                format!("- {tool} {args}: {bytes} bytes{place}")
            };
            let worth = match (is_error, file) {
                (true, _) => Worth::Failure,
                (false, Some(_)) => Worth::File,
                (false, None) => Worth::Step,
            };
            Some(Line { text, worth })
        }
        Message::Heard { from, text, .. } => {
            let text = short(text, LINE_BYTES_MAX);
            let who = match from {
                Actor::Agent(agent) => agent.as_str(),
                Actor::Outside(outsider) => match outsider.kind {
                    OutsiderKind::Runtime => return step(format!("- note: {text}")),
                    // Without names, which no model needs.
                    kind => kind.phrase(),
                },
            };
            step(format!("- {who} wrote: {text}{}", parts(message)))
        }
        Message::Shared { from, message, .. } => {
            step(format!("- {from} knows: {}{}", short(&message.text(), LINE_BYTES_MAX), parts(message)))
        }
        Message::Mismatch(text) => {
            let text = format!("- wrong answer: {}", short(text, LINE_BYTES_MAX));
            Some(Line { text, worth: Worth::Failure })
        }
        Message::Repeated(text) => {
            let text = format!("- warning: {}", short(text, LINE_BYTES_MAX));
            Some(Line { text, worth: Worth::Failure })
        }
        Message::Note(text) => step(format!("- note: {}", short(text, LINE_BYTES_MAX))),
        Message::System(_) | Message::Folded(_) => None,
    }
}

/// A text on one line, cut to `bytes_max`.
fn short(text: &str, bytes_max: usize) -> String {
    let line = cut(text, bytes_max).replace(['\n', '\r'], " ");
    if line.len() < text.len() { format!("{line}…") } else { line }
}
