//! Texts and numbers as people read them. They may hold anything that models write: the printer must filter them.

use spinney_kernel::budget::Amounts;
pub use spinney_kernel::primitives::is_hostile;
use spinney_kernel::primitives::{Counted, Millis, Time, TreeId};

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

/// When something continues: `until 14:00 UTC, 2h 05m left`.
#[must_use]
pub fn until_words(until: Time, now: Time) -> String {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    let left = until.0.saturating_sub(now.0);
    let minutes = until.0 / 60_000 % (24 * 60);
    let day = if left >= DAY_MS { format!("{} ", date(until)) } else { String::new() };
    format!("until {day}{:02}:{:02} UTC, {:#} left", minutes / 60, minutes % 60, Millis(left / 1_000 * 1_000))
}

/// The date of a moment, in UTC.
#[must_use]
pub fn date(at: Time) -> String {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    // Days since 0000-03-01 in the calendar of today: then the day that some years have more is the last of a year.
    let days = at.0 / DAY_MS + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
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
    fn days_are_those_of_the_calendar() {
        let at = |seconds: u64| date(Time(seconds * 1_000));
        assert_eq!(at(0), "1970-01-01");
        assert_eq!(at(951_782_399), "2000-02-28");
        assert_eq!(at(951_782_400), "2000-02-29");
        assert_eq!(at(951_868_800), "2000-03-01");
        assert_eq!(at(1_709_164_800), "2024-02-29");
        assert_eq!(at(1_735_689_599), "2024-12-31");
        assert_eq!(at(1_735_689_600), "2025-01-01");
        assert_eq!(at(4_107_542_400), "2100-03-01");
    }

    #[test]
    fn the_end_of_a_wait_is_a_time_and_what_is_left() {
        let until = Time(14 * 3_600_000);
        assert_eq!(until_words(until, Time(until.0 - 7_500_400)), "until 14:00 UTC, 2h 05m left");
        assert_eq!(until_words(until, Time(until.0 - 5_000)), "until 14:00 UTC, 5.00s left");
        let late = Time(951_782_400_000);
        assert_eq!(until_words(late, Time(late.0 - 172_800_000)), "until 2000-02-29 00:00 UTC, 48h 00m left");
    }

    #[test]
    fn numbers_read_like_people_write_them() {
        assert_eq!(counted(1, "step"), "1 step");
        assert_eq!(counted(1_234_567, "token"), "1,234,567 tokens");
        assert_eq!([ago(10), ago(61_000), ago(172_800_000)], ["just now", "1 minute ago", "2 days ago"]);
    }
}
