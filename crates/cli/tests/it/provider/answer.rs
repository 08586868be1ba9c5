//! What a model answers: text, calls of tools, and what both cost in tokens.

use serde_json::Value;
use spinney_kernel::budget::Usage;

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Tools by name, each with its arguments; a text goes to a tool that takes no JSON (responses only).
    pub(crate) calls: Vec<(String, Value)>,
    pub(crate) usage: Usage,
    pub(crate) pace: Pace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    AtOnce,
    /// Only after `Provider::release`.
    Late,
    /// Half of it; then nothing until the client disconnects.
    Open,
}

impl Answer {
    pub(crate) fn says(text: &str, usage: Usage) -> Self {
        Self { text: text.to_owned(), calls: Vec::new(), usage, pace: Pace::AtOnce }
    }

    pub(crate) fn calls(mut self, tool: &str, arguments: Value) -> Self {
        self.calls.push((tool.to_owned(), arguments));
        self
    }

    pub(crate) const fn at(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// The id of a call of a tool: the same for the same answer, and different within a conversation.
    pub(super) fn call_id(turns: usize, place: usize) -> String {
        format!("call_{turns:04}_{place:04}")
    }
}
