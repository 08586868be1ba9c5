//! The line of an event in a list of them.

use spinney::bus::TracedEvent;
use spinney_kernel::primitives::{Millis, Time};

use super::{EventNames, EventText, EventWeight, asked_by, describe, event_path, settled};

/// Deepest indentation, in agents, so a chain of thousands still fits.
const INDENT_MAX: usize = 16;

/// The parts of an event's line, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLine {
    /// How long after the first event it came, and its number in a log.
    pub time: String,
    /// How deep its agent is.
    pub indent: String,
    /// The agent, or its path in a log.
    pub who: String,
    /// What happened.
    pub text: String,
}

impl EventLine {
    /// Every event with its number and path. `names` have taken it in; `started` is the time of the first event.
    #[must_use]
    pub fn of_log(names: &EventNames, traced: &TracedEvent, started: Time) -> Self {
        let TracedEvent { recorded, context, .. } = traced;
        let path = if context.path().is_empty() { "-".to_owned() } else { event_path(context) };
        let settled = settled(names, &recorded.event).map_or_else(String::new, |it| format!("  {it}"));
        let time = format!("{:>5}  {:>#7}  ", recorded.seq.0, since(traced, started));
        let text = describe(names, &recorded.event).text + &asked(traced) + &settled;
        Self { time, indent: String::new(), who: format!("{path}  "), text }
    }

    /// Only an important event, indented by depth.
    #[must_use]
    pub fn if_important(names: &EventNames, traced: &TracedEvent, started: Time) -> Option<Self> {
        let TracedEvent { recorded, context, .. } = traced;
        let EventText { text, weight } = describe(names, &recorded.event);
        if weight == EventWeight::Detail {
            return None;
        }
        let indent = "  ".repeat(context.path().len().saturating_sub(1).min(INDENT_MAX));
        let who = context.agent.as_ref().map(|agent| format!("{agent} ")).unwrap_or_default();
        let time = format!("{:>#7}  ", since(traced, started));
        Some(Self { time, indent, who, text: text + &asked(traced) })
    }
}

fn since(traced: &TracedEvent, started: Time) -> Millis {
    Millis(traced.recorded.at.0.saturating_sub(started.0))
}

fn asked(TracedEvent { recorded, .. }: &TracedEvent) -> String {
    asked_by(&recorded.event, recorded.actor.as_ref()).unwrap_or_default()
}
