//! What a program with a follow-up continues: the session of an ended agent, and what that was told and answered. A program
//! has no context of ours, so this is all that we know of it.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use crate::primitives::{AgentId, Body, SessionId, limit};

/// Tasks with their answers that a program is told of when it begins anew: the first, and the newest.
const EXCHANGES_TOLD: usize = 4;
const INTRODUCTION: &str = "You continue earlier work of yours that you do not remember. This is what you were told \
    and what you answered. The files that you wrote then may be elsewhere now, so look before you rely on one.";
const TASK: &str = "Your new task:";

/// What an agent that is a program continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPast {
    /// The agent that has ended.
    pub agent: AgentId,
    /// The session that its program is continued by, if it named one.
    pub session: Option<SessionId>,
    /// Oldest first.
    exchanges: Vec<Exchange>,
}

/// A task, and the answer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Exchange {
    task: Arc<str>,
    answer: Arc<str>,
}

/// What is known of the program that a living agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramRecord {
    pub(super) past: Option<Arc<ProgramPast>>,
    pub(super) session: Option<SessionId>,
    task: Arc<str>,
    answer: Option<Arc<str>>,
}

/// What the call of a program says.
pub(super) struct ProgramArgs {
    task: Arc<str>,
    /// The agent that it continues.
    pub(super) continues: Option<AgentId>,
}

impl ProgramArgs {
    pub(super) fn read(args: &str) -> Self {
        let args: Value = serde_json::from_str(args).unwrap_or_default();
        let word = |key: &str| args.get(key).and_then(Value::as_str);
        let task = word("task").unwrap_or_default().into();
        Self { task, continues: word("continues").and_then(|agent| agent.parse().ok()) }
    }
}

impl ProgramRecord {
    pub(super) fn new(args: &ProgramArgs, past: Option<Arc<ProgramPast>>) -> Self {
        Self { past, session: None, task: Arc::clone(&args.task), answer: None }
    }

    pub(super) fn answered(&mut self, body: &Body) {
        self.answer = Some(body.text.as_str().into());
    }

    /// What an agent continues that is given the next task of this one.
    pub(super) fn continued(&self, agent: AgentId) -> ProgramPast {
        let mut exchanges = self.past.as_ref().map(|past| past.exchanges.clone()).unwrap_or_default();
        if exchanges.len() >= EXCHANGES_TOLD {
            exchanges.remove(1);
        }
        let answer = self.answer.clone().unwrap_or_default();
        exchanges.push(Exchange { task: Arc::clone(&self.task), answer });
        ProgramPast { agent, session: self.session.clone(), exchanges }
    }
}

impl ProgramPast {
    /// What a program is told that begins anew: what was said before, as far as it fits beside the task.
    #[must_use]
    pub fn retold(&self, task: &str) -> String {
        let texts = self.exchanges.iter().flat_map(|exchange| [&exchange.task, &exchange.answer]);
        // Headings and marks are short.
        let overhead = INTRODUCTION.len() + TASK.len() + 128 * (1 + 2 * self.exchanges.len());
        let room = limit::COMMAND_WORD_BYTES_MAX.saturating_sub(task.len() + overhead);
        let each = room / (2 * self.exchanges.len()).max(1);
        let mut all = INTRODUCTION.to_owned();
        for (text, heading) in texts.zip(["You were told:", "You answered:"].into_iter().cycle()) {
            // Writing to a string cannot fail.
            let _ = write!(all, "\n\n{heading}\n\n{}", cut(text, each));
        }
        let _ = write!(all, "\n\n{TASK}\n\n{task}");
        if all.len() > limit::COMMAND_WORD_BYTES_MAX { task.to_owned() } else { all }
    }
}

/// The beginning and the end of a text, if it is longer than this.
fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(bytes_max / 2);
    let tail = text.ceil_char_boundary(text.len() - bytes_max / 2);
    format!("{}\n[{} bytes are left out]\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(past: Option<ProgramPast>, task: &str, answer: &str) -> ProgramRecord {
        let args = ProgramArgs { task: task.into(), continues: None };
        let mut record = ProgramRecord::new(&args, past.map(Arc::new));
        record.answered(&Body::text(answer));
        record
    }

    fn agent() -> AgentId {
        "coder".parse().unwrap()
    }

    #[test]
    fn a_program_that_begins_anew_is_told_what_was_said_in_order() {
        let first = record(None, "Count the trees.", "There are seven.").continued(agent());
        let second = record(Some(first), "Name them.", "Ash and oak.").continued(agent());
        let told = second.retold("Which is the oldest?");
        let places =
            ["Count the trees.", "There are seven.", "Name them.", "Ash and oak.", "Which is the oldest?"]
                .map(|text| told.find(text).unwrap());
        assert!(places.is_sorted(), "{told}");
        assert!(told.starts_with(INTRODUCTION));
    }

    /// Linux takes no larger word. The first task says what all of it is for, so it stays.
    #[test]
    fn what_is_retold_fits_into_one_word() {
        let long = "täsk ".repeat(30_000);
        let mut past = None;
        for round in 0..20 {
            past = Some(record(past, &format!("round {round} {long}"), &long).continued(agent()));
        }
        let past = past.unwrap();
        assert_eq!(past.exchanges.len(), EXCHANGES_TOLD);
        let told = past.retold("Which is the oldest?");
        assert!(told.len() <= limit::COMMAND_WORD_BYTES_MAX, "{}", told.len());
        assert!(told.contains("round 0 ") && told.contains("round 19 ") && !told.contains("round 5 "));
        assert!(told.contains("bytes are left out") && told.ends_with("Which is the oldest?"));
        let task = "x".repeat(limit::COMMAND_WORD_BYTES_MAX);
        assert_eq!(past.retold(&task), task, "the task alone fills the word");
    }
}
