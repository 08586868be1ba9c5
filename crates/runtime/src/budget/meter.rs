//! A meter: how a running call says what it has used so far.

use std::sync::Arc;

use spinney_kernel::budget::{AmountError, Amounts, Resource};

use crate::sync::Mutex;

/// Handed to a call made with [`Budget::run`](super::Budget::run).
#[derive(Clone)]
pub struct Meter(Arc<Gauge>);

struct Gauge {
    attempt: u32,
    reading: Mutex<Reading>,
}

#[derive(Clone, Copy)]
enum Reading {
    Running(Option<Amounts>),
    Ended,
}

/// Why a report of usage was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MeterError {
    /// The number cannot be true; the report before it still counts.
    #[error(transparent)]
    Amount(#[from] AmountError),
    /// The call has been settled already.
    #[error("the call has ended and is settled: book what came after with `charge`")]
    Ended,
}

impl Meter {
    pub(super) fn new(attempt: u32) -> Self {
        Self(Arc::new(Gauge { attempt, reading: Mutex::new(Reading::Running(None)) }))
    }

    /// Which attempt this is; the first is 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// Says what the call has used so far, all of it: a later report replaces the one before. The counts that were
    /// held (steps, tool calls, retries) are used by starting the call and need no report.
    ///
    /// # Errors
    /// If the number cannot be true, or the call has ended.
    pub fn used(&self, so_far: Amounts) -> Result<(), MeterError> {
        let so_far = so_far.checked()?;
        match &mut *self.0.reading.lock() {
            Reading::Running(reading) => *reading = Some(so_far),
            Reading::Ended => return Err(MeterError::Ended),
        }
        Ok(())
    }

    /// Ends the meter. Gives what a call that held `estimate` is to be booked at, if it reported anything.
    pub(super) fn end(&self, estimate: &Amounts) -> Option<Amounts> {
        let reading = std::mem::replace(&mut *self.0.reading.lock(), Reading::Ended);
        match reading {
            Reading::Running(used) => used.map(|used| with_counts(used, estimate)),
            Reading::Ended => None,
        }
    }
}

/// The larger of what was reported and what was held, for the counts only.
fn with_counts(mut used: Amounts, estimate: &Amounts) -> Amounts {
    for count in [Resource::Steps, Resource::ToolCalls, Resource::Retries] {
        used = used.with(count, used.of(count).max(estimate.of(count)));
    }
    used
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("attempt", &self.0.attempt).finish_non_exhaustive()
    }
}
