//! A clock that tests set.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spinney::clock::Clock;

#[derive(Default)]
pub(crate) struct ManualClock(AtomicU64);

impl ManualClock {
    pub(crate) fn at(now_ms: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(now_ms)))
    }

    pub(crate) fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn the_system_clock_tells_a_time_of_this_century_and_never_goes_back() {
    let clock = spinney::clock::SystemClock::new();
    let first = clock.now_ms();
    assert!(first > 1_700_000_000_000);
    assert!(clock.now_ms() >= first);
}
