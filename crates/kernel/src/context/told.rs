//! How a model is told: the first message of an agent, and the end of each call as a tool's result.

use crate::agent::Exit;
use crate::body::{Body, cut};
use crate::call::{ChildEnd, Outcome};
use crate::caps::Caps;
use crate::definition::{Definition, Turns};
use crate::fault::FaultKind;
use crate::limit;
use crate::turn::Builtin;

/// What stands around goal and tools in the first message.
const TASK: &str = "Your task: ";
const TOOLS: &str = "Tools you may use:";
const CLOSE: &str = "When you are done, answer with a clear summary of the result.";

/// The most bytes that say that a text is only a preview.
const PREVIEW_BYTES_MAX: u64 = 64;
/// The most bytes that name a child, its end, and that this is known.
const KNOWN_BYTES_MAX: usize = 96;

/// The first message of an agent: its role's prompt, its goal, its tools, and nothing else.
#[must_use]
pub fn system(definition: &Definition, caps: &Caps, turns: &Turns, goal: &str) -> String {
    let mut text = String::new();
    if !turns.prompt.text.is_empty() {
        text.push_str(&turns.prompt.text);
        text.push_str("\n\n");
    }
    text.push_str(TASK);
    text.push_str(goal);
    text.push_str("\n\n");
    let lines = tool_lines(definition, caps);
    if !lines.is_empty() {
        text.push_str(TOOLS);
        text.push('\n');
        text.push_str(&lines);
        text.push('\n');
    }
    text.push_str(CLOSE);
    text
}

/// The most tokens that the first message can have.
pub(crate) fn first_tokens(definition: &Definition, caps: &Caps, turns: &Turns, goal: &str) -> u64 {
    let around = TASK.len() + TOOLS.len() + CLOSE.len() + 8;
    let allowed = definition.tools.iter().filter(|(name, _)| caps.tools.has(name));
    let schemas: usize = allowed.map(|(_, tool)| tool.schema.len()).sum();
    let text = goal.len() + tool_lines(definition, caps).len() + schemas + around;
    turns.prompt.tokens_max().saturating_add(text as u64).saturating_add(limit::MESSAGE_TOKENS)
}

fn tool_lines(definition: &Definition, caps: &Caps) -> String {
    let own = definition.tools.iter().map(|(name, tool)| (name.as_str(), tool.description.as_str()));
    let builtin = Builtin::ALL.into_iter().map(|builtin| (builtin.word(), builtin.description()));
    let allowed = |name: &str| name.parse().is_ok_and(|name| caps.tools.has(&name));
    builtin
        .chain(own)
        .filter(|(name, _)| allowed(name))
        .map(|(name, description)| format!("- {name}: {}\n", description.trim()))
        .collect()
}

/// The end of a call that is no model call, as its result: what the model reads, and whether it is an error. Ended
/// children are told by `child`.
pub(crate) fn told(outcome: &Outcome, child: impl FnMut(&ChildEnd) -> String) -> (String, bool) {
    let notice = |text: String| (cut(&text, limit::NOTICE_BYTES_MAX), true);
    match outcome {
        Outcome::Done { body, is_error, .. } => (shown(body), *is_error),
        Outcome::Answered { answer } => (shown(answer), false),
        Outcome::Children { ended } => (ended.iter().map(child).collect::<Vec<_>>().join("\n\n"), false),
        Outcome::Expired { ended } => {
            let told: Vec<String> = ended.iter().map(child).collect();
            (format!("time is up; ended by now: {}\n\n{}", ended.len(), told.join("\n\n")), true)
        }
        Outcome::Message { .. } => ("a message came".to_owned(), false),
        Outcome::Failed { fault } if fault.kind == FaultKind::Stopped => notice("stopped".to_owned()),
        Outcome::Failed { fault } => notice(format!("failed ({}): {}", fault.kind.word(), fault.message)),
        Outcome::Lost => {
            notice("lost: the process died during this call and nobody knows whether it happened; find out before you try again".to_owned())
        }
        Outcome::Cancelled => notice("cancelled".to_owned()),
        Outcome::Refused { refusal } => notice(refusal.to_string()),
    }
}

/// A text as a model reads it. A preview says that it is one.
pub(crate) fn shown(body: &Body) -> String {
    match &body.rest {
        Some(rest) => format!("{}\n[only the beginning: {} bytes in all]", body.text, rest.bytes),
        None => body.text.clone(),
    }
}

/// The most tokens that [`shown`] can have.
pub(crate) fn shown_tokens(body: &Body) -> u64 {
    body.tokens_max().saturating_add(if body.rest.is_some() { PREVIEW_BYTES_MAX } else { 0 })
}

/// The most tokens that [`told`] can have.
pub(crate) fn told_tokens(outcome: &Outcome, child: impl Fn(&ChildEnd) -> u64) -> u64 {
    let notice = limit::NOTICE_BYTES_MAX as u64;
    match outcome {
        Outcome::Done { body, asks, .. } => {
            // Each result repeats the id and the name of what it answers.
            let names = |ask: &super::ToolAsk| (ask.id.len() + ask.tool.len()) as u64;
            let asked = |ask: &super::ToolAsk| ask.tokens_max() + names(ask) + limit::MESSAGE_TOKENS;
            shown_tokens(body).saturating_add(asks.iter().map(asked).sum())
        }
        Outcome::Answered { answer } => shown_tokens(answer),
        Outcome::Children { ended } => ended.iter().map(|end| child_tokens(&end.state, child(end))).sum(),
        Outcome::Expired { ended } => {
            notice + ended.iter().map(|end| child_tokens(&end.state, child(end))).sum::<u64>()
        }
        Outcome::Message { .. }
        | Outcome::Failed { .. }
        | Outcome::Lost
        | Outcome::Cancelled
        | Outcome::Refused { .. } => notice,
    }
}

/// The most tokens that a child's end can have, told in full or as something that is known: what it shows, and how it
/// ended if that needs words.
pub(crate) fn child_tokens(state: &str, shown: u64) -> u64 {
    let words = if state == Exit::Completed.word() { KNOWN_BYTES_MAX } else { limit::NOTICE_BYTES_MAX };
    shown.saturating_add(words as u64)
}

/// A child's end, as its parent reads it.
pub(crate) fn child_told(agent: &str, exit: &Exit, shown: &str) -> String {
    let why = match exit {
        Exit::Completed => return shown.to_owned(),
        Exit::Exhausted { account, short } => format!("exhausted ({})", short.told(account)),
        Exit::Failed { error } => format!("failed ({}: {})", error.code, error.message),
        Exit::Cancelled { reason } => format!("cancelled ({reason})"),
    };
    let why = cut(&why, limit::NOTICE_BYTES_MAX - 128);
    if shown.is_empty() {
        format!("{agent} {why}")
    } else {
        format!("{agent} {why}; partial result:\n{shown}")
    }
}
