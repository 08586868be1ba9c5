//! Time as the kernel sees it: a number that arrives with the input. Nothing in here reads a clock.

use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub u64);

/// A length of time as people say it: `200 ms`, `5 seconds`, `10 minutes`, `1 hour 30 minutes`.
#[must_use]
pub fn spoken(ms: u64) -> String {
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    let units = [("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000_u64)];
    let mut left = ms;
    let mut words = Vec::new();
    for (unit, unit_ms) in units {
        let count = left / unit_ms;
        left %= unit_ms;
        if count > 0 && words.len() < 2 {
            words.push(format!("{count} {unit}{}", if count == 1 { "" } else { "s" }));
        }
    }
    words.join(" ")
}

impl Time {
    /// This moment, `ms` later.
    #[must_use]
    pub const fn after_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}
