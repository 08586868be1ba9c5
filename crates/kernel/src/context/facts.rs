//! What stands behind a result beside its text: what a child used, and what is left for the one who reads it. It is one
//! line, and its numbers are those of the moment at which they are read first.

use std::fmt;

use crate::budget::{AMOUNT_MAX, Amounts, Ceilings, Resource};

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
        let used = self.used.map(|used| format!("used {used}"));
        let left = self.left.map(|left| format!("{LEFT} {left}"));
        let parts: Vec<String> = used.into_iter().chain(left).collect();
        if parts.is_empty() { Ok(()) } else { write!(f, "[{}]", parts.join("; ")) }
    }
}

const LEFT: &str = "you have left";

/// The most tokens that one half of the line has: it is counted with the longest numbers, each digit in turn.
pub(crate) fn facts_tokens(tokens: &dyn Fn(&str) -> u64) -> u64 {
    let all = Resource::ALL.map(|resource| resource.amount(AMOUNT_MAX).to_string()).join(", ");
    let line = format!("\n[{LEFT} {all}; ");
    let with = |digit: char| -> String {
        line.chars().map(|c| if c.is_ascii_digit() { digit } else { c }).collect()
    };
    ('0'..='9').map(|digit| tokens(&with(digit))).max().unwrap_or_default()
}
