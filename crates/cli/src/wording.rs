//! Words and numbers as people read them. Whether a terminal may see them is `out`'s business.

use spinney_kernel::budget::{Amounts, Resource, usd};
use spinney_kernel::words::spoken;

/// Longest text that stands in a line of the story.
pub(crate) const LINE_CHARS_MAX: usize = 140;

/// A text on one line, cut to what one can take in at a glance.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
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

/// How many of something: `1 step`, `1,234 tokens`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(count))
}

/// What was used, all of it.
pub(crate) fn spent(amounts: &Amounts) -> String {
    let of = |resource| amounts.of(resource);
    let retries = match of(Resource::Retries) {
        1 => "1 retry".to_owned(),
        retries => format!("{} retries", grouped(retries)),
    };
    [
        usd(of(Resource::Cost)),
        counted(of(Resource::Tokens), "token"),
        counted(of(Resource::Steps), "step"),
        counted(of(Resource::ToolCalls), "tool call"),
        retries,
    ]
    .join(" · ")
}

/// What was used, where nothing else is said of what was not.
pub(crate) fn spent_briefly(amounts: &Amounts) -> String {
    let shown = Resource::ALL.into_iter().filter(|resource| amounts.of(*resource) > 0);
    let shown: Vec<String> = shown.map(|resource| amount(resource, amounts.of(resource))).collect();
    if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") }
}

/// What somebody may do more after a raise: `use $0.50 more and take 5 minutes longer`.
pub(crate) fn more(amounts: &Amounts, ms: u64) -> String {
    let used = (!amounts.is_zero() || ms == 0).then(|| format!("use {} more", spent_briefly(amounts)));
    let longer = (ms > 0).then(|| format!("take {} longer", spoken(ms)));
    let said: Vec<String> = used.into_iter().chain(longer).collect();
    said.join(" and ")
}

/// So much of a resource, with its unit.
pub(crate) fn amount(resource: Resource, amount: u64) -> String {
    match resource {
        Resource::Cost => usd(amount),
        Resource::Tokens => counted(amount, "token"),
        Resource::Steps => counted(amount, "step"),
        Resource::ToolCalls => counted(amount, "tool call"),
        Resource::Retries if amount == 1 => "1 retry".to_owned(),
        Resource::Retries => format!("{} retries", grouped(amount)),
    }
}

/// A number with commas.
pub(crate) fn grouped(number: u64) -> String {
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

/// How long something took: `0.12s`, `3m 05s`, `2h 10m`.
pub(crate) fn took(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{seconds}.{:02}s", ms % 1_000 / 10),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// How long ago something was: `just now`, `5 minutes ago`.
pub(crate) fn ago(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..5 => "just now".to_owned(),
        5..60 => format!("{seconds} seconds ago"),
        60..3_600 => format!("{} ago", counted(seconds / 60, "minute")),
        3_600..86_400 => format!("{} ago", counted(seconds / 3_600, "hour")),
        _ => format!("{} ago", counted(seconds / 86_400, "day")),
    }
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
        assert_eq!(
            [took(0), took(1_250), took(65_000), took(7_800_000)],
            ["0.00s", "1.25s", "1m 05s", "2h 10m"]
        );
        assert_eq!([ago(10), ago(61_000), ago(172_800_000)], ["just now", "1 minute ago", "2 days ago"]);
    }
}
