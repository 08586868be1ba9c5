//! Time as the kernel sees it: a number that arrives with the input. Nothing here reads a clock.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Counted;

/// A moment, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub u64);

/// A duration in milliseconds. `{}` writes its two largest units, `1 hour 30 minutes`; `{:.1}` only the largest;
/// `{:#}` is for columns: `1.25s`, `3m 05s`, `2h 10m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(ms) = *self;
        let seconds = ms / 1_000;
        if f.alternate() {
            return match seconds {
                0..60 => f.pad(&format!("{seconds}.{:02}s", ms % 1_000 / 10)),
                60..3_600 => f.pad(&format!("{}m {:02}s", seconds / 60, seconds % 60)),
                _ => f.pad(&format!("{}h {:02}m", seconds / 3_600, seconds % 3_600 / 60)),
            };
        }
        if seconds == 0 {
            return write!(f, "{ms} ms");
        }
        let units = [("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)];
        let mut left = seconds;
        let counted = units.map(|(unit, unit_seconds)| {
            let count = left / unit_seconds;
            left %= unit_seconds;
            (count, unit)
        });
        let shown = counted.into_iter().filter(|(count, _)| *count > 0).take(f.precision().unwrap_or(2));
        for (at, (count, unit)) in shown.enumerate() {
            write!(f, "{}{}", if at == 0 { "" } else { " " }, Counted::new(count, unit))?;
        }
        Ok(())
    }
}

impl Time {
    #[must_use]
    pub const fn after_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_written_for_sentences_and_for_columns() {
        let spoken = |ms| Millis(ms).to_string();
        assert_eq!(spoken(200), "200 ms");
        assert_eq!([spoken(1_000), spoken(90_061_000)], ["1 second", "1 day 1 hour"]);
        assert_eq!([spoken(5_400_000), spoken(3_605_000)], ["1 hour 30 minutes", "1 hour 5 seconds"]);
        assert_eq!(format!("{:.1}", Millis(5_400_000)), "1 hour");
        let column = |ms| format!("{:#}", Millis(ms));
        assert_eq!([column(0), column(1_250), column(65_000)], ["0.00s", "1.25s", "1m 05s"]);
        assert_eq!(column(7_800_000), "2h 10m");
        assert_eq!(format!("{:>#8}|", Millis(1_250)), "   1.25s|");
    }
}
