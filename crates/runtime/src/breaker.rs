//! The circuit breaker: a state machine over the time that it is given. It knows no calls, budgets or clocks.
//!
//! Consecutive failures open it; while it is open nothing passes; afterwards one probe may try. Every caller that is
//! let through returns its pass in every case, so a probe that never ran cannot keep its slot.

/// Consecutive failures that open the breaker.
pub(crate) const FAILURES_MAX: u32 = 5;
/// How long it stays open, in milliseconds.
pub(crate) const OPEN_MS: u64 = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breaker {
    /// Everything passes; counts consecutive failures.
    Closed { failures: u32 },
    /// Nothing passes before `until_ms`; then one probe does.
    Open { until_ms: u64 },
    /// One probe is running; another one may try from `until_ms` if this one gives no result.
    Probing { until_ms: u64 },
}

/// Returned by a call when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Plain,
    Probe,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    Succeeded,
    Failed {
        now_ms: u64,
    },
    /// It was refused, dropped or cut off, which says nothing about the other side.
    Unsaid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tripped {
    Open { until_ms: u64 },
    Probing,
}

impl Breaker {
    pub(crate) const fn new() -> Self {
        Self::Closed { failures: 0 }
    }

    pub(crate) fn admit(&mut self, now_ms: u64) -> Result<Pass, Tripped> {
        match *self {
            Self::Closed { .. } => Ok(Pass::Plain),
            Self::Open { until_ms } if now_ms < until_ms => Err(Tripped::Open { until_ms }),
            Self::Open { until_ms } => {
                *self = Self::Probing { until_ms };
                Ok(Pass::Probe)
            }
            Self::Probing { .. } => Err(Tripped::Probing),
        }
    }

    /// Takes a pass back. A plain call that ends after the breaker opened changes nothing: only the probe decides.
    pub(crate) fn end(&mut self, pass: Pass, end: CallEnd) {
        *self = match (pass, *self, end) {
            (Pass::Probe, _, CallEnd::Succeeded) | (Pass::Plain, Self::Closed { .. }, CallEnd::Succeeded) => {
                Self::new()
            }
            (Pass::Probe, _, CallEnd::Failed { now_ms }) => opened(now_ms),
            (Pass::Probe, Self::Probing { until_ms }, CallEnd::Unsaid) => Self::Open { until_ms },
            (Pass::Plain, Self::Closed { failures }, CallEnd::Failed { now_ms }) => {
                let failures = failures + 1;
                if failures < FAILURES_MAX { Self::Closed { failures } } else { opened(now_ms) }
            }
            (_, unchanged, _) => unchanged,
        };
    }
}

const fn opened(now_ms: u64) -> Breaker {
    Breaker::Open { until_ms: now_ms.saturating_add(OPEN_MS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened_at(now_ms: u64) -> Breaker {
        let mut breaker = Breaker::new();
        for _ in 0..FAILURES_MAX {
            let pass = breaker.admit(now_ms).unwrap();
            breaker.end(pass, CallEnd::Failed { now_ms });
        }
        breaker
    }

    #[test]
    fn five_failures_in_a_row_open_it_for_a_minute() {
        let mut breaker = opened_at(1_000);
        assert_eq!(breaker, Breaker::Open { until_ms: 61_000 });
        assert_eq!(breaker.admit(60_999), Err(Tripped::Open { until_ms: 61_000 }));
        assert_eq!(breaker.admit(61_000), Ok(Pass::Probe));
    }

    #[test]
    fn a_success_starts_the_count_again() {
        let mut breaker = Breaker::Closed { failures: FAILURES_MAX - 1 };
        breaker.end(Pass::Plain, CallEnd::Succeeded);
        breaker.end(Pass::Plain, CallEnd::Failed { now_ms: 0 });
        assert_eq!(breaker, Breaker::Closed { failures: 1 });
    }

    #[test]
    fn only_one_probe_passes_and_its_end_decides() {
        for (end, expected) in [
            (CallEnd::Succeeded, Breaker::Closed { failures: 0 }),
            (CallEnd::Failed { now_ms: 70_000 }, Breaker::Open { until_ms: 130_000 }),
            (CallEnd::Unsaid, Breaker::Open { until_ms: 60_000 }),
        ] {
            let mut breaker = opened_at(0);
            assert_eq!(breaker.admit(70_000), Ok(Pass::Probe));
            assert_eq!(breaker.admit(70_000), Err(Tripped::Probing));
            breaker.end(Pass::Probe, end);
            assert_eq!(breaker, expected);
        }
    }

    #[test]
    fn a_straggler_from_before_it_opened_changes_nothing() {
        for end in [CallEnd::Succeeded, CallEnd::Failed { now_ms: 99_000 }, CallEnd::Unsaid] {
            for mut breaker in [Breaker::Open { until_ms: 61_000 }, Breaker::Probing { until_ms: 61_000 }] {
                let before = breaker;
                breaker.end(Pass::Plain, end);
                assert_eq!(breaker, before);
            }
        }
    }
}
