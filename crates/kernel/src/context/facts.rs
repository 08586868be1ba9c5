//! The line of facts after a result: what a child used, and what its reader has left. The numbers are those of the
//! moment when the result is first read.

use std::fmt;

use crate::budget::{AMOUNT_MAX, Amounts, Ceilings, Resource};
use crate::primitives::TokenCount;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What the child and everything below it used.
    pub used: Option<Amounts>,
    /// What the reader had left when it read this.
    pub left: Option<Ceilings>,
}

impl fmt::Display for Facts {
    /// The line that a driver appends to the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.used.map(|used| format!("used {used}"));
        let left = self.left.map(|left| format!("{LEFT} {left}"));
        let parts: Vec<String> = used.into_iter().chain(left).collect();
        if parts.is_empty() { Ok(()) } else { write!(f, "[{}]", parts.join("; ")) }
    }
}

/// An amount as long as most are.
const USUAL_AMOUNT: u64 = 12_345;

const LEFT: &str = "you have left";

/// The tokens of one half of the line: the bound is counted with the longest numbers, for each digit.
pub(crate) fn facts_tokens(tokens: &dyn Fn(&str) -> TokenCount) -> TokenCount {
    let all = Resource::ALL.map(|resource| resource.amount(AMOUNT_MAX).to_string()).join(", ");
    let line = format!("\n[{LEFT} {all}; ");
    let with = |digit: char| -> String {
        line.chars().map(|c| if c.is_ascii_digit() { digit } else { c }).collect()
    };
    let longest = ('0'..='9').map(|digit| tokens(&with(digit))).fold(TokenCount::ZERO, TokenCount::max);
    let usual = Resource::ALL.map(|resource| resource.amount(USUAL_AMOUNT).to_string()).join(", ");
    TokenCount::new(longest.bound(), tokens(&format!("\n[{LEFT} {usual}; ")).estimate())
}
