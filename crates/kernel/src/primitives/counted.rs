//! A count with its noun. `{}` is the form for models and journals; `{:#}` groups digits for people.

use std::fmt;

/// A number and what it counts: `1 step`, `1234 tokens`, `2 retries`; with `{:#}`, `1,234 tokens`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted<'a> {
    count: u64,
    one: &'a str,
}

impl<'a> Counted<'a> {
    /// `one` is the singular noun.
    #[must_use]
    pub const fn new(count: u64, one: &'a str) -> Self {
        Self { count, one }
    }
}

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, one } = *self;
        if f.alternate() {
            f.write_str(&grouped(count))?;
        } else {
            write!(f, "{count}")?;
        }
        match one.strip_suffix("ry") {
            _ if count == 1 => write!(f, " {one}"),
            Some(stem) => write!(f, " {stem}ries"),
            None => write!(f, " {one}s"),
        }
    }
}

#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
