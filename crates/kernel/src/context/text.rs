//! How a call's end is written as a tool result for the model.

use crate::context::offload::Whole;
use crate::context::{Finding, Findings, TimedOut, offload};
use crate::primitives::{AgentId, Body, Envelope, FaultKind, Reworded, TokenCount, cut, limit};
use crate::record::{ChildEnd, Exit, ExitKind, Outcome, Sources, ToolAsk, WaitFor, WaitNeed};

/// The most bytes that name a child, its exit, and that it is already known.
const KNOWN_BYTES_MAX: usize = 96;

/// Prefix of a default answer, so no model takes it for a person's.
const DEFAULT_ANSWER: Reworded = Reworded::new(
    "no answer in time; your default answer is used: ",
    "nobody answered in time; your default answer counts: ",
);

/// The result of a tool that had not answered at the checkpoint of a rollback.
pub(crate) const ROLLED_BACK: Reworded = Reworded::new(
    "the outcome is unknown: your context was rolled back to before it ended; check before you repeat it",
    "nobody knows what came of this: your context was rolled back to before it ended; find out before you ask for it again",
);

const EXPIRED: Reworded = Reworded::new(
    "no answer in time: decide yourself, or ask another person",
    "nobody answered in time: decide yourself, or ask somebody else",
);

const LOST: Reworded = Reworded::new(
    "lost: the process died during this call, and it is unknown whether it happened; check before you try again",
    "lost: the process died during this call and nobody knows whether it happened; find out before you try again",
);

/// Ends a wait for a message whose time is over, from rules 8 on.
pub(super) const NO_MESSAGE: &str = "no message came in time: continue with what you have, or wait again";

/// Ends a wait for a message.
const NOBODY_LEFT: &str = "no message can come, because every agent waits; continue with what you have";

/// The notice of an agent's last call. Every hold counts this text, so changing it changes the rules.
pub(crate) const LAST_CALL: &str = "This is your last call, and no tool can be used: answer now with what you have, and say what is missing.";
const _: () =
    assert!(LAST_CALL.len() as u64 + limit::MESSAGE_TOKENS.bound() <= limit::WRAP_UP_TOKENS.bound());

/// The end of a call that is neither a model's nor for children, as a tool result: the text, and whether it is an
/// error. `whole` is where the whole of a tool's output is.
pub(crate) fn outcome_text(outcome: &Outcome, whole: &Whole, rules: u32) -> (String, bool) {
    let notice = |text: String| (cut(&text, limit::NOTICE_BYTES_MAX), true);
    match outcome {
        Outcome::Done { body, is_error, .. } => (offload::shown(body.clone(), whole), *is_error),
        Outcome::Answered { answer, is_default } => {
            let before = if *is_default { DEFAULT_ANSWER.under(rules) } else { "" };
            (format!("{before}{}", shown(answer.clone())), false)
        }
        Outcome::Children { .. } => (String::new(), false),
        Outcome::Expired { .. } => notice(EXPIRED.under(rules).to_owned()),
        Outcome::Message { .. } => ("a message came".to_owned(), false),
        Outcome::NobodyLeft => notice(NOBODY_LEFT.to_owned()),
        Outcome::Approved => (String::new(), false),
        Outcome::Failed { fault } if fault.kind == FaultKind::Stopped => notice("stopped".to_owned()),
        Outcome::Failed { fault } => notice(format!("failed ({}): {}", fault.kind.as_str(), fault.message)),
        Outcome::Lost => notice(LOST.under(rules).to_owned()),
        Outcome::Cancelled => notice("cancelled".to_owned()),
        Outcome::Refused { refusal } => notice(refusal.text(rules)),
    }
}

/// The result of waiting for children: a single one as it is, several with their names, and what is missing.
pub(crate) fn wait_text(
    agents: &[AgentId],
    need: WaitNeed,
    sources: Sources,
    findings: Vec<Finding>,
    late: TimedOut,
    rules: u32,
) -> String {
    let findings = Findings::new(need, agents, findings);
    let mut texts = Vec::new();
    if late == TimedOut::Yes
        || !findings.missing.is_empty()
        || !findings.is_had()
        || need == WaitNeed::Majority
    {
        texts.push(findings.text_under(late, rules));
    }
    match findings.findings.as_slice() {
        [one] if findings.missing.is_empty() => texts.push(one.text.clone()),
        all => texts.extend(all.iter().map(Finding::to_string)),
    }
    if sources == Sources::Listed {
        texts.push(findings.source_lines());
    }
    joined(texts.into_iter().filter(|text| !text.is_empty()))
}

/// The tokens that [`wait_text`] adds to the children's texts.
pub(crate) fn wait_tokens(wait: &WaitFor) -> TokenCount {
    let WaitFor::Children { need, sources, .. } = wait else { return TokenCount::ZERO };
    let notice = if *need == WaitNeed::All { 0 } else { limit::NOTICE_BYTES_MAX };
    let listed = if *sources == Sources::Listed { limit::SOURCES_BYTES_MAX } else { 0 };
    TokenCount::of_bytes(notice + listed)
}

/// Joins texts with an empty line between them.
fn joined(mut texts: impl Iterator<Item = String>) -> String {
    let first = texts.next().unwrap_or_default();
    texts.fold(first, |all, text| all + "\n\n" + &text)
}

/// A text that is not a tool's output, as a model reads it. A preview says so.
pub(crate) fn shown(body: Body) -> String {
    offload::shown(body, &Whole::Journal)
}

/// A message as a model reads it: its metadata line and its text.
pub(crate) fn heard(body: Body, envelope: &Envelope) -> String {
    let mut text = envelope.line();
    if text.is_empty() {
        return shown(body);
    }
    text.push_str(&shown(body));
    text
}

/// The tokens of [`heard`].
pub(crate) fn heard_tokens(body: &Body, envelope: &Envelope) -> TokenCount {
    shown_tokens(body).plus(TokenCount::of_bytes(envelope.line().len()))
}

/// The tokens of [`shown`], wherever the whole is.
pub(crate) fn shown_tokens(body: &Body) -> TokenCount {
    let words = match (body.rest(), body.ends()) {
        (Some(_), Some(_)) => offload::GAP_BYTES_MAX,
        (Some(_), None) => offload::BEGINNING_BYTES_MAX,
        (None, _) => 0,
    };
    body.counted().plus(TokenCount::of_bytes(words))
}

/// The tokens of [`outcome_text`].
pub(crate) fn outcome_tokens(
    outcome: &Outcome,
    rules: u32,
    child: impl Fn(&ChildEnd) -> TokenCount,
) -> TokenCount {
    let notice = TokenCount::of_bytes(limit::NOTICE_BYTES_MAX);
    let children =
        |ended: &[ChildEnd]| ended.iter().map(|end| child_tokens(end.state, child(end))).sum::<TokenCount>();
    match outcome {
        Outcome::Done { body, asks, .. } => {
            // Each result repeats the id and the name of its tool call.
            let names = |ask: &ToolAsk| TokenCount::of_bytes(ask.id.len() + ask.tool.len());
            let asked = |ask: &ToolAsk| ask.counted().plus(names(ask)).plus(limit::MESSAGE_TOKENS);
            asks.iter().map(asked).fold(shown_tokens(body), TokenCount::plus)
        }
        Outcome::Answered { answer, is_default } => {
            let before = if *is_default { DEFAULT_ANSWER.under(rules).len() } else { 0 };
            shown_tokens(answer).plus(TokenCount::of_bytes(before))
        }
        Outcome::Children { ended } => children(ended),
        Outcome::Expired { ended } => notice.plus(children(ended)),
        Outcome::Approved => TokenCount::ZERO,
        Outcome::Message { .. }
        | Outcome::NobodyLeft
        | Outcome::Failed { .. }
        | Outcome::Lost
        | Outcome::Cancelled
        | Outcome::Refused { .. } => notice,
    }
}

/// The tokens of a child's end, in full or as already known: its text, and its exit unless it completed.
pub(crate) fn child_tokens(state: ExitKind, shown: TokenCount) -> TokenCount {
    let words = if state == ExitKind::Completed { KNOWN_BYTES_MAX } else { limit::NOTICE_BYTES_MAX };
    shown.plus(TokenCount::of_bytes(words))
}

/// A child's end, as its parent reads it.
pub(crate) fn child_text(agent: &str, exit: &Exit, shown: String) -> String {
    if exit.is_success() {
        return shown;
    }
    let why = match exit {
        // Packets contained this form, and packets must stay the same byte for byte.
        Exit::Cancelled { reason } if reason.is_empty() => "cancelled ()".to_owned(),
        other => other.to_string(),
    };
    let why = cut(&why, limit::NOTICE_BYTES_MAX - 128);
    if shown.is_empty() {
        format!("{agent} {why}")
    } else {
        format!("{agent} {why}; partial result:\n{shown}")
    }
}

/// The notice that an agent repeats a tool call that brings nothing new. Every hold counts this text, so changing it
/// changes the rules.
pub(crate) fn repeats_text(tool: &str, count: u32, count_max: u32, rules: u32) -> String {
    let then = match count_max {
        0 => String::new(),
        count_max if rules >= 7 => format!(" After {count_max} such calls in a row you will be stopped."),
        count_max => format!(" At {count_max} such calls in a row you are stopped."),
    };
    format!(
        "You have called `{tool}` {count} times in a row with the same arguments, and the result was the same each time. Do something else, or answer with what you have.{then}"
    )
}

/// The notice that a child's window is smaller than its parent's.
pub(crate) fn clamp_text(child: &str, size: u64, parent_size: u64) -> String {
    format!(
        "the window of {child} has {size} tokens and yours has {parent_size}: give it less to read at once"
    )
}
