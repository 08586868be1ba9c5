//! `spinney show`: an agent's whole context for people, without the system's notices to the agent.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use spinney_journal::{Blocking, Journal};
use spinney_kernel::context::{Message, Shown};
use spinney_kernel::record::ToolAsk;
use spinney_kernel::words::By;

use super::show_calls::ShowCalls;
use crate::exec::homes;
use crate::exit::Exit;
use crate::history::recall::{Clamp, Known, Place, Recalled, recall};
use crate::home::ids::{find, short};
use crate::result::whole;
use crate::terminal::paint::Ink;
use crate::terminal::wording::{LINE_CHARS_MAX, counted, one_line};
use crate::terminal::{Terminal, out};
use crate::{args, home};

/// Bytes of a text that are shown without `--full`.
const TEXT_BYTES_MAX: usize = 600;

pub(super) fn show(home: &Path, args: &args::Show, terminal: Terminal) -> Result<Exit> {
    let journal = home::look(home)?;
    let tree = find(home, &journal, args.whom.tree())?.tree;
    let agent = &args.whom.agent;
    if homes::is_of_exec(home) {
        let (is_json, is_full) = (args.whom.json, args.full);
        ShowCalls { journal: &journal, tree, agent, is_json, is_full }.show()?;
        return Ok(Exit::Completed);
    }
    let recalled = recall(&journal, tree, agent)?;
    let shown = || recalled.messages.iter().filter(|known| known.message.category().is_shown()).zip(1_u64..);
    if args.whom.json {
        for (known, number) in shown() {
            out::json(&line(known, number, &journal))?;
        }
        return Ok(Exit::Completed);
    }
    let Recalled { state, seq, .. } = &recalled;
    let say = |ink: Ink, text: &str| out::text(ink, text, 2, terminal);
    say(Ink::Strong, &format!("{agent} of tree {}: {state}, as of event {}", short(tree), seq.0))?;
    say(Ink::Plain, &sum(shown().map(|(known, _)| known)))?;
    if let Some(summary) = &recalled.summary {
        let summary = one_line(summary, LINE_CHARS_MAX);
        say(Ink::Plain, &format!("summary of what was left out, by its model: {summary}"))?;
    }
    for Clamp { child, size, parent_size } in &recalled.clamps {
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
        say(Ink::Name, &head(known, number))?;
        for line in body(known, &journal, args.full) {
            out::text(Ink::Plain, format!("    {line}").trim_end(), 4, terminal)?;
        }
    }
    Ok(Exit::Completed)
}

/// The number of messages, and how many of them the window left out.
fn sum<'a>(shown: impl Iterator<Item = &'a Known>) -> String {
    let (mut all, mut left_out, mut unread) = (0, 0, 0);
    for known in shown {
        all += 1;
        left_out += u64::from(known.place == Place::LeftOut);
        unread += u64::from(known.place == Place::Unread);
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
fn head(known: &Known, number: u64) -> String {
    let Known { message, tokens, place } = known;
    let mut words = vec![message.category().word().to_owned(), role(message).to_owned()];
    words.extend(from(message).map(|from| format!("from {from}")));
    if let Message::Result { is_error: true, .. } = message.as_ref() {
        words.push("failed".to_owned());
    }
    words.extend(at_most(message, *tokens).map(|tokens| counted(tokens, "token")));
    match place {
        Place::Window => {}
        Place::LeftOut => words.push("left out".to_owned()),
        Place::Unread => words.push("not read yet".to_owned()),
    }
    format!("#{number}  {}", words.join(" · "))
}

/// Upper bound on its tokens. The result of a wait is counted before its text is known, with room for a list of
/// sources; no text has more tokens than bytes.
fn at_most(message: &Message, tokens: Option<u64>) -> Option<u64> {
    let is_text = matches!(message, Message::Result { .. }) && message.parts().next().is_none();
    let facts = message.facts().map_or(0, |facts| facts.to_string().len() + 1);
    let bytes = (message.text().len() + facts) as u64;
    tokens.map(|tokens| if is_text { tokens.min(bytes) } else { tokens })
}

/// The role in which a model sees it.
const fn role(message: &Message) -> &'static str {
    match message {
        Message::System(_) => "system",
        Message::Heard { .. }
        | Message::Shared { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_)
        | Message::Folded(_) => "user",
        Message::Said { .. } => "assistant",
        Message::Result { .. } => "tool",
    }
}

/// The sender: a person, an agent or a tool. `None` for the agent's own texts and its first message.
fn from(message: &Message) -> Option<String> {
    match message {
        Message::Heard { from: By::Person, .. } => Some("a person".to_owned()),
        Message::Heard { from: By::Agent(agent), .. } | Message::Shared { from: agent, .. } => {
            Some(agent.to_string())
        }
        Message::Result { tool, .. } => Some(one_line(tool, LINE_CHARS_MAX)),
        Message::System(_)
        | Message::Said { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_)
        | Message::Folded(_) => None,
    }
}

/// Its whole text.
fn text(message: &Message, journal: &dyn Journal) -> String {
    match message {
        Message::Said { body, .. } => whole(body, journal),
        Message::Shared { message, .. } => text(message, journal),
        Message::System(_)
        | Message::Heard { .. }
        | Message::Result { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_)
        | Message::Folded(_) => message.text().into_owned(),
    }
}

fn asks(message: &Message) -> &[ToolAsk] {
    if let Message::Said { asks, .. } = message { asks } else { &[] }
}

/// What its model thought before it said that, where the provider shows it.
fn reasoning(message: &Message, journal: &dyn Journal) -> Option<String> {
    let blob = message.thought()?.reasoning.as_ref()?;
    match journal.blob(blob).wait() {
        Ok(bytes) => bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        Err(fault) => {
            out::complain(&format!("what the model thought cannot be shown: {fault}"));
            None
        }
    }
}

/// The lines of its text, what comes along with it, and the tools that it asks for.
fn body(known: &Known, journal: &dyn Journal, full: bool) -> Vec<String> {
    let text = text(&known.message, journal);
    let end = if full { text.len() } else { text.floor_char_boundary(TEXT_BYTES_MAX) };
    let thought = reasoning(&known.message, journal).map(|thought| {
        format!("thinks: {}", if full { thought } else { one_line(&thought, LINE_CHARS_MAX) })
    });
    let mut lines: Vec<String> =
        thought.iter().flat_map(|thought| thought.lines()).map(str::to_owned).collect();
    lines.extend(text[..end].trim_end().lines().map(str::to_owned));
    if end < text.len() {
        lines.push(format!("… {} in all; --full shows them", counted(text.len() as u64, "byte")));
    }
    lines.extend(known.message.facts().map(ToString::to_string));
    lines.extend(known.message.parts().map(|part| part.to_string()));
    for ToolAsk { tool, args, .. } in asks(&known.message) {
        let args = if full { args.clone() } else { one_line(args, LINE_CHARS_MAX) };
        lines.extend(format!("calls {} {args}", one_line(tool, LINE_CHARS_MAX)).lines().map(str::to_owned));
    }
    lines
}

fn line(known: &Known, number: u64, journal: &dyn Journal) -> String {
    let Known { message, tokens, place } = known;
    let from = match message.as_ref() {
        Message::Heard { from, .. } => json!(from),
        Message::Shared { from, .. } => json!({ "agent": from }),
        Message::Result { tool, .. } => json!({ "tool": tool }),
        Message::System(_)
        | Message::Said { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_)
        | Message::Folded(_) => Value::Null,
    };
    let is_error = matches!(message.as_ref(), Message::Result { is_error: true, .. });
    let asks = asks(message).iter();
    let asks: Vec<Value> =
        asks.map(|ToolAsk { id, tool, args, .. }| json!({ "id": id, "tool": tool, "args": args })).collect();
    let parts = message.parts().map(|shown| {
        let part = shown.part();
        let is_left_out = matches!(shown, Shown::LeftOut(_));
        json!({
            "kind": part.kind(),
            "name": part.name(),
            "media": part.media(),
            "bytes": part.blob().bytes,
            "blob": part.blob().hash,
            "is_left_out": is_left_out,
        })
    });
    let parts: Vec<Value> = parts.collect();
    let mut line = json!({
        "number": number,
        "category": message.category(),
        "role": role(message),
        "from": from,
        "tokens": at_most(message, *tokens),
        "place": match place {
            Place::Window => "window",
            Place::LeftOut => "left_out",
            Place::Unread => "unread",
        },
        "is_error": is_error,
        "text": text(message, journal),
        "asks": asks,
    });
    if let (Some(reasoning), Some(line)) = (reasoning(message, journal), line.as_object_mut()) {
        line.insert("reasoning".to_owned(), json!(reasoning));
    }
    if let (Some(facts), Some(line)) = (message.facts(), line.as_object_mut()) {
        line.insert("facts".to_owned(), json!({ "used": facts.used, "left": facts.left }));
    }
    if let (false, Some(line)) = (parts.is_empty(), line.as_object_mut()) {
        line.insert("parts".to_owned(), parts.into());
    }
    line.to_string()
}
