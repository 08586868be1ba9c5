//! Dates and times of day as the source writes them, in UTC.

use anyhow::{Context, ensure};

/// The beginning of a day like `2026-10-30`, in milliseconds since the Unix epoch.
pub(super) fn midnight_ms(date: &str) -> anyhow::Result<u64> {
    let what = || format!("`{date}` is no date");
    let [year, month, day] = numbers(date, '-', [4, 2, 2]).with_context(what)?;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let in_month = |year: u64, month: u64| match month {
        2 => 28 + u64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    ensure!(year >= 1970 && (1..=12).contains(&month) && (1..=in_month(year, month)).contains(&day), what());
    let years: u64 = (1970..year).map(|year| 365 + u64::from(leap(year))).sum();
    let months: u64 = (1..month).map(|month| in_month(year, month)).sum();
    Ok((years + months + day - 1) * 24 * 60 * 60 * 1_000)
}

/// The second of the day of a time like `16:30:00Z`.
pub(super) fn second_of_day(time: &str) -> anyhow::Result<u64> {
    let what = || format!("`{time}` is no time of day in UTC");
    let [hour, minute, second] =
        numbers(time.strip_suffix('Z').with_context(what)?, ':', [2, 2, 2]).with_context(what)?;
    ensure!(hour < 24 && minute < 60 && second < 60, what());
    Ok(hour * 3_600 + minute * 60 + second)
}

fn numbers(text: &str, between: char, lengths: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(between);
    let mut numbers = [0; 3];
    for (number, length) in numbers.iter_mut().zip(lengths) {
        let part = parts.next()?;
        let is_right = part.len() == length && part.bytes().all(|digit| digit.is_ascii_digit());
        *number = is_right.then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::{midnight_ms, second_of_day};

    #[test]
    fn dates_and_times_are_counted_in_utc() {
        assert_eq!(midnight_ms("1970-01-01").unwrap(), 0);
        assert_eq!(midnight_ms("2024-02-29").unwrap(), 1_709_164_800_000);
        assert_eq!(midnight_ms("2026-01-01").unwrap(), 1_767_225_600_000);
        assert_eq!(second_of_day("16:30:00Z").unwrap(), 59_400);
    }

    #[test]
    fn what_is_no_date_or_time_is_refused() {
        for date in ["2025-02-29", "2026-13-01", "2026-1-01", "1969-12-31", "2026-01-01-01", "tomorrow"] {
            assert!(midnight_ms(date).is_err(), "{date}");
        }
        for time in ["24:00:00Z", "12:00:00", "12:00:00+01:00", "12:60:00Z", "noonZ"] {
            assert!(second_of_day(time).is_err(), "{time}");
        }
    }
}
