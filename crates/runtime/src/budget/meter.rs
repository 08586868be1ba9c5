//! A meter: how a running call reports its usage so far.

use std::sync::Arc;

use spinney_kernel::budget::{AmountError, Amounts, Resource};

use crate::sync::Mutex;

/// Given to a call made with [`Budget::run`](super::Budget::run).
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

/// Why a usage report was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MeterError {
    /// The number is implausible; the previous report still counts.
    #[error(transparent)]
    Amount(#[from] AmountError),
    /// The call is already settled.
    #[error("the call has ended and is settled: book what came after with `charge`")]
    Ended,
}

impl Meter {
    pub(super) fn new(attempt: u32) -> Self {
        Self(Arc::new(Gauge { attempt, reading: Mutex::new(Reading::Running(None)) }))
    }

    /// The attempt's number; the first is 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// Reports the call's total usage so far; it replaces the previous report. The held counts (steps, tool calls,
    /// retries) are used by starting the call and need no report.
    ///
    /// # Errors
    /// If the number is implausible, or the call has ended.
    pub fn used(&self, so_far: Amounts) -> Result<(), MeterError> {
        let so_far = so_far.checked()?;
        match &mut *self.0.reading.lock() {
            Reading::Running(reading) => *reading = Some(so_far),
            Reading::Ended => return Err(MeterError::Ended),
        }
        Ok(())
    }

    /// Ends the meter. Returns what to book for a call that held `estimate`, if it reported anything.
    pub(super) fn end(&self, estimate: &Amounts) -> Option<Amounts> {
        let reading = std::mem::replace(&mut *self.0.reading.lock(), Reading::Ended);
        match reading {
            Reading::Running(used) => used.map(|used| with_counts(used, estimate)),
            Reading::Ended => None,
        }
    }
}

/// The larger of reported and held, for the counts only.
fn with_counts(mut used: Amounts, estimate: &Amounts) -> Amounts {
    for count in [Resource::Steps, Resource::ToolCalls, Resource::Retries] {
        used = used.with(count, used.get(count).max(estimate.get(count)));
    }
    used
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("attempt", &self.0.attempt).finish_non_exhaustive()
    }
}
