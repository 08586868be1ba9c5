//! `spinney show`: an agent's whole context for people, without the system's notices to the agent.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use serde::Serialize;
use spinney_host::home::ids::{NamedTree, RedactedTree};
use spinney_host::home::side_journals;
use spinney_journal::Journal;
use spinney_kernel::primitives::{AgentId, TreeId, grouped};
use spinney_terminal::paint::Ink;
use spinney_terminal::reflow::reflowed;
use spinney_terminal::{Terminal, out};
use spinney_view::agents;
use spinney_view::context_message::{MessageAsk, MessageSender, MessageView};
use spinney_view::recall::{ClampedChild, KnownMessage, MessagePlace, RecallError, RecalledAgent, recall};
use spinney_view::wording::{LINE_CHARS_MAX, counted, one_line, short_id};

use super::resume::note_weak_boxes;
use super::show_calls::ShowCalls;
use crate::error_text::in_words_of;
use crate::exit::Exit;
use crate::{args, hint};

/// Bytes of a text that are shown without `--full`.
pub(super) const TEXT_BYTES_MAX: usize = 600;
/// Columns before the text of a message.
const INDENT: usize = 4;

pub(super) async fn show(home: &Path, args: &args::Show, terminal: Terminal) -> Result<Exit> {
    let named = NamedTree::in_home(home, args.whom.tree()).await?;
    let RedactedTree { journal, tree, .. } = named.redacted().await?;
    let agent = &agents::at(&journal, tree, args.whom.agent.clone()).await??;
    if side_journals::is_of_exec(home).await {
        let (is_json, is_full) = (args.whom.json, args.full);
        let calls = ShowCalls { journal: &journal, tree, agent, is_json, is_full, terminal };
        if args.calls { calls.show().await } else { calls.show_conversation().await }?;
        return Ok(Exit::Completed);
    }
    if args.calls {
        bail!("--calls is for agents of programs that `exec` runs: show {agent} without it");
    }
    let recalled = recalled(home, &journal, tree, agent).await?;
    let shown = || recalled.messages.iter().filter(|known| known.message.category().is_shown()).zip(1_u64..);
    if args.whom.json {
        for (known, number) in shown() {
            out::json(&line(&read(known, number, &journal).await))?;
        }
        return Ok(Exit::Completed);
    }
    note_weak_boxes(&journal, tree).await?;
    let RecalledAgent { state, seq, .. } = &recalled;
    let say = |ink: Ink, text: &str| out::text(ink, text, 2, terminal);
    say(Ink::Strong, &format!("{agent} of tree {}: {state}, as of event {}", short_id(tree), seq.0))?;
    say(Ink::Plain, &sum(shown().map(|(known, _)| known)))?;
    if let Some(summary) = &recalled.summary {
        let summary = one_line(summary, LINE_CHARS_MAX);
        say(Ink::Plain, &format!("summary of what was left out, by its model: {summary}"))?;
    }
    for ClampedChild { child, size, parent_size } in &recalled.clamps {
        let (size, own) = (counted(*size, "token"), counted(*parent_size, "token"));
        say(
            Ink::Warn,
            &format!("it was notified that {child} has a smaller window: {size} instead of {own}"),
        )?;
    }
    for (seq, refusal) in &recalled.refusals {
        let refusal = one_line(refusal, LINE_CHARS_MAX);
        say(Ink::Warn, &format!("it was refused, event {}: {refusal}", seq.0))?;
    }
    for (known, number) in shown() {
        out::line("")?;
        let message = read(known, number, &journal).await;
        say(Ink::Name, &head(&message))?;
        let facts = known.message.facts().map(ToString::to_string);
        let along = facts.into_iter().chain(known.message.parts().map(|part| part.to_string())).collect();
        for line in body(&message, along, args.full, terminal.width) {
            let line = format!("{:INDENT$}{line}", "");
            out::text(Ink::Plain, line.trim_end(), INDENT, terminal)?;
        }
    }
    Ok(Exit::Completed)
}

/// An agent's context. One that has none gets the command that lists the others.
pub(super) async fn recalled(
    home: &Path,
    journal: &dyn Journal,
    tree: TreeId,
    agent: &AgentId,
) -> Result<RecalledAgent> {
    recall(journal, tree, agent).await.map_err(|error| match error {
        RecallError::NoTurns { .. } => {
            anyhow!("{error}; all agents: {}", hint::about(home, "tree", tree, &[]))
        }
        error => unrecalled(error),
    })
}

/// The exit code depends on the fault.
pub(super) fn unrecalled(error: RecallError) -> anyhow::Error {
    match error {
        RecallError::Journal(fault) => fault.into(),
        RecallError::Unknown { .. } | RecallError::NoTurns { .. } => error.into(),
    }
}

/// A message with its texts. One that cannot be read is missing, and a note says so.
async fn read(known: &KnownMessage, number: u64, journal: &dyn Journal) -> MessageView {
    let (message, faults) = MessageView::read(known, number, journal).await;
    faults.iter().for_each(|fault| out::complain(&in_words_of(fault)));
    message
}

/// The number of messages, and how many of them the window left out.
fn sum<'a>(shown: impl Iterator<Item = &'a KnownMessage>) -> String {
    let (mut all, mut left_out, mut unread) = (0, 0, 0);
    for known in shown {
        all += 1;
        left_out += u64::from(known.place == MessagePlace::LeftOut);
        unread += u64::from(known.place == MessagePlace::Unread);
    }
    let mut text = counted(all, "message");
    if left_out > 0 {
        text += &format!(", {left_out} of them left out of its window");
    }
    if unread > 0 {
        text += &format!(", {unread} not read yet");
    }
    text
}

/// Number, category, role, sender, tokens, and where it is.
fn head(message: &MessageView) -> String {
    let mut words = vec![message.category.as_str().to_owned(), message.role.to_owned()];
    words.extend(message.from.as_ref().map(|from| match from {
        MessageSender::Actor(actor) => format!("from {actor}"),
        MessageSender::Agent { agent } => format!("from {agent}"),
        MessageSender::Tool { tool } => format!("from {}", one_line(tool, LINE_CHARS_MAX)),
    }));
    if message.is_error {
        words.push("failed".to_owned());
    }
    words.extend(match (message.output_tokens, message.tokens) {
        // An answer is output once, and input of every later call.
        (Some(output), Some(tokens)) => {
            Some(format!("{} out, {} as input", counted(output, "token"), grouped(tokens)))
        }
        (Some(output), None) => Some(format!("{} out", counted(output, "token"))),
        (None, tokens) => tokens.map(|tokens| counted(tokens, "token")),
    });
    match message.place {
        MessagePlace::Window => {}
        MessagePlace::LeftOut => words.push("left out".to_owned()),
        MessagePlace::Unread => words.push("not read yet".to_owned()),
    }
    format!("#{}  {}", message.number, words.join(" · "))
}

/// The lines of its text, what comes along with it, and the tools that it asks for. A text is rewrapped to fit a width.
pub(super) fn body(
    message: &MessageView,
    along: Vec<String>,
    is_full: bool,
    width: Option<usize>,
) -> Vec<String> {
    let MessageView { text, reasoning, asks, .. } = message;
    let mut lines = Vec::new();
    if let Some(thought) = reasoning {
        let thought = if is_full { thought.clone() } else { one_line(thought, LINE_CHARS_MAX) };
        lines.extend(format!("thinks: {thought}").lines().map(str::to_owned));
    }
    let end = if is_full { text.len() } else { text.floor_char_boundary(TEXT_BYTES_MAX) };
    let shown = text[..end].trim_end();
    match width {
        Some(width) => lines.extend(reflowed(&out::inert(shown), width.saturating_sub(INDENT))),
        None => lines.extend(shown.lines().map(str::to_owned)),
    }
    if end < text.len() {
        lines.push(format!("… {} in all; --full shows them", counted(text.len() as u64, "byte")));
    }
    lines.extend(along);
    for MessageAsk { tool, args, .. } in asks {
        let args = if is_full { args.clone() } else { one_line(args, LINE_CHARS_MAX) };
        lines.extend(format!("calls {} {args}", one_line(tool, LINE_CHARS_MAX)).lines().map(str::to_owned));
    }
    lines
}

/// A view for programs.
pub(super) fn line(view: &impl Serialize) -> String {
    serde_json::to_string(view).unwrap_or_else(|_| unreachable!("a view can be written"))
}
