//! Time as the kernel sees it: a number that arrives with the input. Nothing in here reads a clock.

use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// This moment, `ms` later.
    #[must_use]
    pub const fn after_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// This moment, `ms` earlier.
    #[must_use]
    pub const fn before_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }
}
