//! Whether a program that has ended was interrupted. A program may catch Ctrl-C and end with any exit code, Claude Code
//! with 0; or it only cancels what it does, and continues.

use std::time::Duration;

use tokio::time::Instant;

/// A program that runs for this long after an interrupt has handled it.
const HANDLED_AFTER: Duration = Duration::from_secs(60);
/// A call that is asked for sooner comes from a part of the program that has not noticed yet.
const NOTICED_AFTER: Duration = Duration::from_secs(2);

/// The last interrupt of a run.
#[derive(Clone, Copy, Debug)]
pub struct LastInterrupt {
    at: Instant,
    /// How many model calls the program had asked for when it had noticed.
    calls: Option<u64>,
}

impl LastInterrupt {
    /// An interrupt at this moment.
    #[must_use]
    pub const fn new(at: Instant) -> Self {
        Self { at, calls: None }
    }

    /// When to count the calls, if they are not counted yet.
    #[must_use]
    pub fn counts_at(self) -> Option<Instant> {
        self.calls.is_none().then(|| self.at + NOTICED_AFTER)
    }

    /// The program has noticed, and has asked for so many calls.
    pub const fn count(&mut self, calls: u64) {
        self.calls = Some(calls);
    }

    /// How long ago it came.
    #[must_use]
    pub fn age(self, now: Instant) -> Duration {
        now.saturating_duration_since(self.at)
    }

    /// Whether it is why a program ends that ends now, after so many calls.
    #[must_use]
    pub fn is_cause(self, now: Instant, calls: u64) -> bool {
        self.calls.is_none_or(|before| calls == before) && self.age(now) < HANDLED_AFTER
    }
}

#[cfg(test)]
mod tests {
    use spinney::clock::instant;

    use super::*;

    #[test]
    fn a_program_that_ends_soon_without_another_call_was_interrupted() {
        let at = instant();
        let mut interrupt = LastInterrupt::new(at);
        let (soon, late) = (at + Duration::from_secs(59), at + Duration::from_secs(60));
        // Whatever its other parts asked for meanwhile.
        assert!(interrupt.is_cause(at, 3) && interrupt.is_cause(at + Duration::from_secs(1), 9));
        assert_eq!(interrupt.counts_at(), Some(at + NOTICED_AFTER));
        interrupt.count(3);
        assert_eq!(interrupt.counts_at(), None);
        assert!(interrupt.is_cause(soon, 3));
        // It made another call, or ran on.
        assert!(!interrupt.is_cause(soon, 4) && !interrupt.is_cause(late, 3));
    }
}
