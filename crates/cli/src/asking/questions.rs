//! Open questions for people and programs. A question about a tool shows what a yes permits (`approval.rs`).

use serde_json::{Value, json};
use spinney::tree::OpenQuestion;
use spinney_kernel::words::{AgentId, grouped};

use super::approval::{Approval, Extent};
use crate::terminal::wording::{LINE_CHARS_MAX, one_line};

/// Above this many lines, a short form is repeated below, next to the prompt.
const SCREEN_LINES: usize = 16;

/// A question as lines. `show_all` is the command that shows what a brief extent hides.
pub(crate) fn lines(question: &OpenQuestion, extent: Extent, show_all: &str) -> Vec<String> {
    let path = joined(&question.path);
    let Some(ask) = &question.approves else {
        return format!("{path} asks: {}", question.text.trim_end()).lines().map(str::to_owned).collect();
    };
    let Approval { lines: values, hidden_bytes } = Approval::of(ask, extent);
    let agent = question.path.last().map(AgentId::as_str).unwrap_or_default();
    let tool = one_line(&ask.tool, LINE_CHARS_MAX);
    let with = if values.is_empty() { "without arguments" } else { "with this" };
    let what = format!("{path} asks: May `{agent}` call `{tool}` {with}? Answer yes, or say why not.");
    let is_tall = values.len() > SCREEN_LINES;
    let mut lines = vec![what.clone()];
    lines.extend(values.into_iter().map(|value| format!("  {value}")));
    if hidden_bytes > 0 {
        let (hidden, all) = (grouped(hidden_bytes as u64), grouped(ask.args.len() as u64));
        lines.push(format!(
            "!! {hidden} OF {all} BYTES ARE HIDDEN. See all of them before you say yes: {show_all}"
        ));
    }
    if is_tall {
        lines.push(what);
    }
    lines
}

/// A question for programs, in full.
pub(crate) fn json(question: &OpenQuestion) -> Value {
    let OpenQuestion { question, path, text, approves } = question;
    let mut fields = json!({ "question": question, "path": joined(path), "text": text });
    if let (Some(ask), Some(fields)) = (approves, fields.as_object_mut()) {
        fields.insert("approves".to_owned(), json!({ "tool": ask.tool, "args": ask.args }));
    }
    fields
}

/// Ids from the root down, as events show them.
pub(crate) fn joined(path: &[AgentId]) -> String {
    let path: Vec<&str> = path.iter().map(AgentId::as_str).collect();
    path.join("/")
}
