//! Time: the only place of the library that reads a clock. Everything else is given a [`Clock`].
//!
//! The instants are tokio's: when a test pauses tokio's time, this clock stops as well.

use std::pin::Pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant, Sleep, sleep};

/// A clock in milliseconds since the Unix epoch. It must never go back.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now_ms(&self) -> u64;
}

/// The machine's clock. It reads the wall clock once and counts from there, so setting the wall clock moves no
/// deadline.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    started: Instant,
    started_ms: u64,
}

impl SystemClock {
    /// Starts at the wall clock's time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this file is the home of reading the time")]
    pub fn new() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: Instant::now(), started_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let passed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.started_ms.saturating_add(passed)
    }
}

/// This moment, to measure from and to wait until another.
#[must_use]
pub fn instant() -> Instant {
    Instant::now()
}

/// A sleep that can be reset.
pub(crate) struct Nap(Pin<Box<Sleep>>);

impl Nap {
    pub(crate) fn new() -> Self {
        Self(Box::pin(sleep(Duration::ZERO)))
    }

    /// Sleeps for `ms` from now.
    pub(crate) fn set(&mut self, ms: u64) {
        self.0.as_mut().reset(Instant::now() + Duration::from_millis(ms));
    }

    pub(crate) async fn over(&mut self) {
        self.0.as_mut().await;
    }
}
