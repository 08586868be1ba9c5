//! How a model is told the end of a call: as a tool's result.

use crate::context::offload::Whole;
use crate::context::{Finding, Findings, Late, offload};
use crate::record::{ChildEnd, Exit, ExitKind, Outcome, Sources, WaitFor, WaitNeed};
use crate::words::{AgentId, Body, Envelope, FaultKind, cut, limit};

/// The most bytes that name a child, its end, and that this is known.
const KNOWN_BYTES_MAX: usize = 96;

/// What stands before a default answer, so that no model takes it for a person's.
const DEFAULT_ANSWER: &str = "nobody answered in time; your default answer counts: ";

/// How a model is told of a tool that had not answered where its context was rolled back to.
pub(crate) const ROLLED_BACK: &str = "nobody knows what came of this: your context was rolled back to before it ended; find out before you ask for it again";

/// How a model is told that it is asked for the last time. A change of these words is a change of the rules: they are
/// counted in every hold.
pub(crate) const LAST_CALL: &str = "This is your last call, and no tool can be used: answer now with what you have, and say what is missing.";
const _: () = assert!(LAST_CALL.len() as u64 + limit::MESSAGE_TOKENS <= limit::WRAP_UP_TOKENS);

/// The end of a call that is neither a model's nor for children, as its result: what the model reads, and whether it is
/// an error. `whole` is where the whole of a tool's output is.
pub(crate) fn outcome_text(outcome: &Outcome, whole: &Whole) -> (String, bool) {
    let notice = |text: String| (cut(&text, limit::NOTICE_BYTES_MAX), true);
    match outcome {
        Outcome::Done { body, is_error, .. } => (offload::shown(body.clone(), whole), *is_error),
        Outcome::Answered { answer, is_default } => {
            let before = if *is_default { DEFAULT_ANSWER } else { "" };
            (format!("{before}{}", shown(answer.clone())), false)
        }
        Outcome::Children { .. } => (String::new(), false),
        Outcome::Expired { .. } => {
            notice("nobody answered in time: decide yourself, or ask somebody else".to_owned())
        }
        Outcome::Message { .. } => ("a message came".to_owned(), false),
        Outcome::Approved => (String::new(), false),
        Outcome::Failed { fault } if fault.kind == FaultKind::Stopped => notice("stopped".to_owned()),
        Outcome::Failed { fault } => notice(format!("failed ({}): {}", fault.kind.word(), fault.message)),
        Outcome::Lost => {
            notice("lost: the process died during this call and nobody knows whether it happened; find out before you try again".to_owned())
        }
        Outcome::Cancelled => notice("cancelled".to_owned()),
        Outcome::Refused { refusal } => notice(refusal.to_string()),
    }
}

/// What came of waiting for children: one alone as it is, several with who is who, and what is missing.
pub(crate) fn wait_text(
    agents: &[AgentId],
    need: WaitNeed,
    sources: Sources,
    findings: Vec<Finding>,
    late: Late,
) -> String {
    let findings = Findings::new(need, agents, findings);
    let mut texts = Vec::new();
    if late == Late::Yes || !findings.missing.is_empty() || !findings.is_had() || need == WaitNeed::Majority {
        texts.push(findings.text(late));
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

/// The most tokens that [`wait_text`] adds to what the children have to show.
pub(crate) fn wait_tokens(wait: &WaitFor) -> u64 {
    let WaitFor::Children { need, sources, .. } = wait else { return 0 };
    let notice = if *need == WaitNeed::All { 0 } else { limit::NOTICE_BYTES_MAX };
    let listed = if *sources == Sources::Listed { limit::SOURCES_BYTES_MAX } else { 0 };
    (notice + listed) as u64
}

/// Texts with an empty line between them.
fn joined(mut texts: impl Iterator<Item = String>) -> String {
    let first = texts.next().unwrap_or_default();
    texts.fold(first, |all, text| all + "\n\n" + &text)
}

/// A text as a model reads it that is no output of a tool. A preview says that it is one.
pub(crate) fn shown(body: Body) -> String {
    offload::shown(body, &Whole::Journal)
}

/// A message as a model reads it: what stands on it, and its text.
pub(crate) fn heard(body: Body, envelope: &Envelope) -> String {
    let mut text = envelope.line();
    if text.is_empty() {
        return shown(body);
    }
    text.push_str(&shown(body));
    text
}

/// The most tokens that [`heard`] can have.
pub(crate) fn heard_tokens(body: &Body, envelope: &Envelope) -> u64 {
    shown_tokens(body).saturating_add(envelope.line().len() as u64)
}

/// The most tokens that [`shown`] can have, wherever the whole is.
pub(crate) fn shown_tokens(body: &Body) -> u64 {
    let words = match (body.rest(), body.ends()) {
        (Some(_), Some(_)) => offload::GAP_BYTES_MAX,
        (Some(_), None) => offload::BEGINNING_BYTES_MAX,
        (None, _) => 0,
    };
    body.tokens_max().saturating_add(words)
}

/// The most tokens that [`told`] can have.
pub(crate) fn outcome_tokens(outcome: &Outcome, child: impl Fn(&ChildEnd) -> u64) -> u64 {
    let notice = limit::NOTICE_BYTES_MAX as u64;
    match outcome {
        Outcome::Done { body, asks, .. } => {
            // Each result repeats the id and the name of what it answers.
            let names = |ask: &crate::record::ToolAsk| (ask.id.len() + ask.tool.len()) as u64;
            let asked = |ask: &crate::record::ToolAsk| ask.tokens_max() + names(ask) + limit::MESSAGE_TOKENS;
            shown_tokens(body).saturating_add(asks.iter().map(asked).sum())
        }
        Outcome::Answered { answer, is_default } => {
            let before = if *is_default { DEFAULT_ANSWER.len() } else { 0 };
            shown_tokens(answer).saturating_add(before as u64)
        }
        Outcome::Children { ended } => ended.iter().map(|end| child_tokens(end.state, child(end))).sum(),
        Outcome::Expired { ended } => {
            notice + ended.iter().map(|end| child_tokens(end.state, child(end))).sum::<u64>()
        }
        Outcome::Approved => 0,
        Outcome::Message { .. }
        | Outcome::Failed { .. }
        | Outcome::Lost
        | Outcome::Cancelled
        | Outcome::Refused { .. } => notice,
    }
}

/// The most tokens that a child's end can have, told in full or as something that is known: what it shows, and how it
/// ended if that needs words.
pub(crate) fn child_tokens(state: ExitKind, shown: u64) -> u64 {
    let words = if state == ExitKind::Completed { KNOWN_BYTES_MAX } else { limit::NOTICE_BYTES_MAX };
    shown.saturating_add(words as u64)
}

/// A child's end, as its parent reads it.
pub(crate) fn child_text(agent: &str, exit: &Exit, shown: String) -> String {
    if exit.is_success() {
        return shown;
    }
    let why = match exit {
        // Models have read it so: what a packet held once stays the same, byte for byte.
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

/// How an agent is told that the window of its child is smaller than its own.
pub(crate) fn clamp_text(child: &str, size: u64, parent_size: u64) -> String {
    format!(
        "the window of {child} has {size} tokens and yours has {parent_size}: give it less to read at once"
    )
}
