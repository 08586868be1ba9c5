//! What an agent is doing now, in a few words.

use spinney_kernel::port::model::DeltaKind;
use spinney_kernel::primitives::{AgentId, Millis, ModelName, Time};
use spinney_kernel::world::AgentIx;
use spinney_terminal::out::inert;
use spinney_terminal::paint::{Ink, Row, tail};
use spinney_view::live::{AgentDoing, AgentMark, CallDoing, DoingCall, LiveTree, waiting_words};
use spinney_view::wording::{one_line, until_words};

/// Calls and waits below this age do not show it.
const AGE_SHOWN_MS: u64 = 2_000;
/// More than any line shows.
const CHARS_MAX: usize = 200;

/// The sign of an agent's state, and its colour.
pub(super) const fn sign(mark: AgentMark) -> (&'static str, Ink) {
    match mark {
        AgentMark::Asking => ("?", Ink::Warn),
        AgentMark::Halted => ("■", Ink::Bad),
        AgentMark::Failed => ("✗", Ink::Bad),
        AgentMark::Running => ("●", Ink::Good),
        AgentMark::WaitingForBudget => ("$", Ink::Warn),
        AgentMark::Paused => ("‖", Ink::Warn),
        AgentMark::Ending => ("◑", Ink::Dim),
        AgentMark::Waiting => ("◌", Ink::Dim),
        AgentMark::Idle => ("◦", Ink::Dim),
        AgentMark::Cancelled => ("–", Ink::Dim),
        AgentMark::Completed => ("✓", Ink::Good),
    }
}

/// What it does now, or how it ended, in at most this many columns.
pub(super) fn doing(tree: &LiveTree, ix: AgentIx, now: Time, width: usize) -> Row {
    let row = match tree.doing(ix, now) {
        None => Row::new(),
        Some(AgentDoing::Failed(failure)) => Row::inked(Ink::Bad, failure),
        Some(AgentDoing::Said(text) | AgentDoing::Begins(text)) => Row::inked(Ink::Dim, text),
        Some(AgentDoing::Completed) => Row::inked(Ink::Dim, "completed"),
        Some(AgentDoing::Ending) => Row::inked(Ink::Dim, "ending: what it started is being stopped"),
        Some(AgentDoing::Paused) => Row::inked(Ink::Warn, "paused"),
        Some(AgentDoing::Calls(call)) => called(&call, width, now),
    };
    row.cut(width)
}

fn called(DoingCall { what, others, age_ms }: &DoingCall<'_>, width: usize, now: Time) -> Row {
    let mut after = if *others > 0 { format!(" +{others}") } else { String::new() };
    if *age_ms >= AGE_SHOWN_MS {
        after += &format!(" {}", seconds(*age_ms));
    }
    let room = width.saturating_sub(after.chars().count());
    let row = match what {
        CallDoing::Waits { why, account, until } => {
            let until =
                until.filter(|until| *until > now).map(|until| format!(" {}", until_words(until, now)));
            Row::inked(Ink::Warn, &waiting_words(*why, *account)).with(Ink::Warn, &until.unwrap_or_default())
        }
        CallDoing::Streams { kind, text } => streamed(*kind, text, room),
        CallDoing::AsksModel(model) => asks(model, room),
        CallDoing::CallsTool { tool, args } => {
            Row::inked(Ink::Strong, tool.as_str()).with(Ink::Dim, &format!(" {}", one_line(args, CHARS_MAX)))
        }
        CallDoing::WaitsForAgents(agents) => {
            let names: Vec<&str> = agents.iter().map(|agent| AgentId::as_str(agent)).collect();
            Row::inked(Ink::Dim, &format!("waits for {}", one_line(&names.join(", "), CHARS_MAX)))
        }
        CallDoing::WaitsForMessage => Row::inked(Ink::Dim, "waits for a message"),
        CallDoing::AsksPerson(text) => {
            Row::inked(Ink::Warn, &format!("asks a person: {}", one_line(text, CHARS_MAX)))
        }
    };
    row.cut(room).with(Ink::Dim, &after)
}

fn streamed(kind: DeltaKind, text: &str, room: usize) -> Row {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (ink, before) = match kind {
        DeltaKind::Text => (Ink::Plain, "“"),
        DeltaKind::Reasoning => (Ink::Dim, "thinks: "),
        DeltaKind::Output => (Ink::Dim, "prints: "),
    };
    let shown = inert(&text).into_owned();
    Row::inked(ink, &format!("{before}{}", tail(&shown, room.saturating_sub(before.chars().count()))))
}

fn asks(model: &ModelName, room: usize) -> Row {
    let asks = |name: &str| Row::inked(Ink::Dim, "asks model ").with(Ink::Plain, name);
    let whole = asks(model.as_str());
    // Its end says more than its provider.
    if whole.width() <= room { whole } else { model.as_str().rsplit('/').next().map_or(whole, asks) }
}

/// A duration in whole units: `12s`, `3m 05s`.
pub(super) fn seconds(ms: u64) -> String {
    if ms < 60_000 { format!("{}s", ms / 1_000) } else { format!("{:#}", Millis(ms)) }
}
