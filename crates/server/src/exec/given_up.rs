//! The calls of a run that were given up at a ceiling.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::world::Halt;

/// How many there are, and what the last one lacked.
#[derive(Clone, Debug, Default)]
pub struct GivenUpCalls(Arc<Mutex<GivenUpSoFar>>);

#[derive(Debug, Default)]
struct GivenUpSoFar {
    count: u64,
    /// What the last one lacked, if that is known.
    last: Option<Halt>,
}

impl GivenUpCalls {
    /// Counts one more, with what it lacked if that is known.
    pub fn add(&self, last: Option<Halt>) {
        let mut so_far = self.so_far();
        *so_far = GivenUpSoFar { count: so_far.count + 1, last };
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.so_far().count == 0
    }

    /// What the last one lacked.
    #[must_use]
    pub fn last(&self) -> Option<Halt> {
        self.so_far().last.clone()
    }

    fn so_far(&self) -> MutexGuard<'_, GivenUpSoFar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
