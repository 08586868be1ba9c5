//! A clock that starts at a chosen moment and follows tokio's time, including its pauses.

use spinney::clock::{Clock, SystemClock};

/// When it starts, in milliseconds since the Unix epoch.
const START_MS: u64 = 1_700_000_000_000;

/// A clock that always starts at the same moment, so output does not depend on the date.
#[derive(Clone, Copy, Debug)]
pub struct SteadyClock {
    clock: SystemClock,
    began_ms: u64,
}

impl SteadyClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        let clock = SystemClock::new();
        Self { clock, began_ms: clock.now_ms() }
    }
}

impl Default for SteadyClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SteadyClock {
    fn now_ms(&self) -> u64 {
        START_MS + self.clock.now_ms() - self.began_ms
    }
}
