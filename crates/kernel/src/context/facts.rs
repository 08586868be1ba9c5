//! What stands behind a result beside its text: what a child used, and what is left for the one who reads it. It is one
//! line, and its numbers are those of the moment at which they are read first.

use std::fmt;

use crate::budget::{AMOUNT_MAX, Amounts, Ceilings, Resource, usd};

/// What stands behind a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What the child used whose result it is, and everything below it.
    pub used: Option<Amounts>,
    /// What the reader could use when it read this.
    pub left: Option<Ceilings>,
}

impl fmt::Display for Facts {
    /// The line that a driver writes behind the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.used.map(|used| format!("used {}", used_text(&used)));
        let left = self.left.map(|left| format!("{LEFT} {}", left_text(&left)));
        let parts: Vec<String> = used.into_iter().chain(left).collect();
        if parts.is_empty() { Ok(()) } else { write!(f, "[{}]", parts.join("; ")) }
    }
}

const LEFT: &str = "you have left";

/// What was used, or that it was nothing.
pub(crate) fn used_text(used: &Amounts) -> String {
    let shown = Resource::ALL.into_iter().filter(|resource| used.of(*resource) > 0);
    let shown: Vec<String> = shown.map(|resource| amount(resource, used.of(resource))).collect();
    if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") }
}

/// What is left of whatever has a ceiling.
fn left_text(left: &Ceilings) -> String {
    let bounded = left.bounded();
    let shown = bounded.iter().map(|resource| amount(resource, left.of(resource).unwrap_or_default()));
    shown.collect::<Vec<_>>().join(", ")
}

fn amount(resource: Resource, amount: u64) -> String {
    let word = match resource {
        Resource::Cost => return usd(amount),
        Resource::Tokens => "token",
        Resource::Steps => "step",
        Resource::ToolCalls => "tool call",
        Resource::Retries if amount == 1 => return "1 retry".to_owned(),
        Resource::Retries => return format!("{amount} retries"),
    };
    format!("{amount} {word}{}", if amount == 1 { "" } else { "s" })
}

/// The most tokens that one half of the line has: it is counted with the longest numbers, each digit in turn.
pub(crate) fn facts_tokens(tokens: &dyn Fn(&str) -> u64) -> u64 {
    let all = Resource::ALL.map(|resource| amount(resource, AMOUNT_MAX)).join(", ");
    let line = format!("\n[{LEFT} {all}; ");
    let with = |digit: char| -> String {
        line.chars().map(|c| if c.is_ascii_digit() { digit } else { c }).collect()
    };
    ('0'..='9').map(|digit| tokens(&with(digit))).max().unwrap_or_default()
}
