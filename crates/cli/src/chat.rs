//! A conversation at the terminal: what its agents say, as they say it, and what the person wrote. Between them, one line for
//! each other important event.

use std::collections::BTreeSet;

use spinney::bus::{Delta, TracedEvent};
use spinney_kernel::port::model::DeltaKind;
use spinney_kernel::primitives::{Actor, AgentId, CallId, OutsiderKind, Seq};
use spinney_kernel::record::{Event, Outcome, Work};
use spinney_terminal::out::{self, Unwritten};

pub(crate) struct ChatScreen {
    /// The last event that happened before.
    past: Seq,
    /// Who talks to the person: the root, and agents to which the conversation was handed.
    speakers: BTreeSet<AgentId>,
    /// Their turns that are under way.
    turns: BTreeSet<CallId>,
    /// Their waits for the person.
    waits: BTreeSet<CallId>,
    streamed: Option<Streamed>,
    /// Whether the cursor is in the middle of what one of them says.
    is_in_line: bool,
    /// What the person typed here, which is on the screen.
    typed: Option<String>,
}

/// How much of a turn has been written as it came.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Streamed {
    call: CallId,
    attempt: u32,
    bytes: usize,
}

impl ChatScreen {
    pub(crate) fn new(past: Seq) -> Self {
        let (turns, waits) = (BTreeSet::new(), BTreeSet::new());
        Self { past, speakers: BTreeSet::new(), turns, waits, streamed: None, is_in_line: false, typed: None }
    }

    /// The person typed a line.
    pub(crate) fn typed(&mut self, line: &str) {
        self.typed = Some(line.trim_end_matches(['\r', '\n']).to_owned());
    }

    /// Writes what is said now. If the beginning was missed, the whole follows at the end.
    pub(crate) fn delta(&mut self, delta: &Delta) -> Result<(), Unwritten> {
        let is_speaker = delta.origin.path.last().is_some_and(|agent| self.speakers.contains(agent));
        let before = self.streamed.filter(|it| (it.call, it.attempt) == (delta.call, delta.attempt));
        let bytes = before.map_or(0, |before| before.bytes);
        let is_text = is_speaker && delta.kind == DeltaKind::Text;
        if !is_text || !self.turns.contains(&delta.call) || delta.offset != bytes || delta.text.is_empty() {
            return Ok(());
        }
        if before.is_none() {
            self.end_line()?;
        }
        let bytes = bytes + delta.text.len();
        self.streamed = Some(Streamed { call: delta.call, attempt: delta.attempt, bytes });
        let text = marked(&delta.text, !std::mem::replace(&mut self.is_in_line, true));
        out::piece(&text)
    }

    /// Takes an event in. Whether it is part of the conversation, so no other line is written for it.
    pub(crate) fn event(&mut self, traced: &TracedEvent) -> Result<bool, Unwritten> {
        let (event, seq) = (&traced.recorded.event, traced.recorded.seq);
        match event {
            Event::AgentSpawned(spawned) if spawned.talks => {
                self.speakers.insert(spawned.agent.clone());
                Ok(false)
            }
            Event::AgentSpawned(spawned) if spawned.parent.is_none() => {
                self.speakers.insert(spawned.agent.clone());
                out::line(&format!("> {}", spawned.goal))?;
                Ok(true)
            }
            Event::MessageSent { from, to, body, .. } if self.is_of_person(from, to) => {
                let is_shown = self.typed.take().is_some_and(|typed| seq > self.past && typed == body.text);
                if !is_shown {
                    self.end_line()?;
                    out::line(&format!("\n> {}", body.text))?;
                }
                Ok(true)
            }
            Event::CallAsked { call, agent, work: Work::Model(work) } if self.speakers.contains(agent) => {
                if work.is_turn() && work.outside.is_none() {
                    self.turns.insert(*call);
                }
                Ok(false)
            }
            Event::QuestionAsked { call, question, .. } if question.is_after_answer => {
                self.waits.insert(*call);
                Ok(true)
            }
            Event::CallEnded { call, .. } if self.waits.remove(call) => Ok(true),
            Event::CallEnded { call, outcome, .. } if self.turns.remove(call) => self.said(*call, outcome),
            _ => Ok(false),
        }
    }

    /// Before anything else is written.
    pub(crate) fn end_line(&mut self) -> Result<(), Unwritten> {
        if std::mem::take(&mut self.is_in_line) {
            return out::line("");
        }
        Ok(())
    }

    fn said(&mut self, call: CallId, outcome: &Outcome) -> Result<bool, Unwritten> {
        let streamed = self.streamed.take().filter(|streamed| streamed.call == call);
        self.end_line()?;
        let Outcome::Done { body, asks, .. } = outcome else { return Ok(false) };
        let is_whole = streamed.is_some_and(|streamed| streamed.bytes >= body.text.len());
        if !is_whole && !body.text.trim().is_empty() {
            out::line(&marked(&body.text, true))?;
        }
        // Its tool calls have separate lines.
        Ok(asks.is_empty())
    }

    fn is_of_person(&self, from: &Actor, to: &AgentId) -> bool {
        let is_person = matches!(from, Actor::Outside(outsider) if outsider.kind == OutsiderKind::Person);
        is_person && self.speakers.contains(to)
    }
}

/// What an agent says, with a space before each line that would look like one of the person's.
fn marked(text: &str, begins_line: bool) -> String {
    let mut marked = String::with_capacity(text.len());
    let mut is_start = begins_line;
    for letter in text.chars() {
        if is_start && letter == '>' {
            marked.push(' ');
        }
        is_start = letter == '\n';
        marked.push(letter);
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G16: what a model says cannot look like what the person wrote.
    #[test]
    fn g16_no_line_of_a_model_looks_like_one_of_the_person() {
        assert_eq!(marked("> yes\nso\n> no", true), " > yes\nso\n > no");
        assert_eq!(marked("> b", false), "> b");
    }
}
