//! Texts and numbers as people read them. They may hold anything that models write: the printer must filter them.

use spinney_kernel::budget::Amounts;
pub use spinney_kernel::primitives::is_hostile;
use spinney_kernel::primitives::{Counted, Millis, TreeId};

/// Longest text in a line about an event.
pub const LINE_CHARS_MAX: usize = 140;
const SHORT_DIGITS: usize = 12;

/// A text on one line, cut to `chars_max`.
#[must_use]
pub fn one_line(text: &str, chars_max: usize) -> String {
    let mut words = text.split_whitespace();
    let mut line = String::new();
    let mut count = 0;
    for word in words.by_ref() {
        let chars = word.chars().count();
        if count > 0 && count + 1 + chars > chars_max {
            return line + " …";
        }
        if count > 0 {
            line.push(' ');
            count += 1;
        }
        line.extend(word.chars().take(chars_max));
        count += chars;
        if chars > chars_max {
            return line + "…";
        }
    }
    line
}

/// A count with its noun: `1 step`, `1,234 tokens`.
#[must_use]
pub fn counted(count: u64, one: &str) -> String {
    format!("{:#}", Counted::new(count, one))
}

/// What a raise allows: `use $0.50 more and take 5 minutes longer`.
#[must_use]
pub fn more(amounts: &Amounts, ms: u64) -> String {
    let used = (!amounts.is_zero() || ms == 0).then(|| format!("use {amounts:#} more"));
    let longer = (ms > 0).then(|| format!("take {} longer", Millis(ms)));
    let said: Vec<String> = used.into_iter().chain(longer).collect();
    said.join(" and ")
}

/// A time in the past: `just now`, `5 minutes ago`.
#[must_use]
pub fn ago(ms: u64) -> String {
    if ms < 5_000 { "just now".to_owned() } else { format!("{:.1} ago", Millis(ms)) }
}

/// The first digits of a tree's id: enough to name it, as people see it everywhere.
#[must_use]
pub fn short_id(tree: TreeId) -> String {
    let mut id = tree.to_string();
    id.truncate(SHORT_DIGITS);
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_between_words() {
        assert_eq!(one_line("one  two\nthree", 20), "one two three");
        assert_eq!(one_line("one two three", 8), "one two …");
        assert_eq!(one_line("onetwothree", 5), "onetw…");
    }

    #[test]
    fn numbers_read_like_people_write_them() {
        assert_eq!(counted(1, "step"), "1 step");
        assert_eq!(counted(1_234_567, "token"), "1,234,567 tokens");
        assert_eq!([ago(10), ago(61_000), ago(172_800_000)], ["just now", "1 minute ago", "2 days ago"]);
    }
}
