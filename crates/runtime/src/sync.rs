//! The lock of a budget, and how a thread waits for a future. Under the feature `shuttle` both are shuttle's, so that
//! a test can try every interleaving.

#[cfg(not(feature = "shuttle"))]
pub(crate) use plain::Mutex;
#[cfg(feature = "shuttle")]
pub(crate) use shuttled::{Mutex, park_on};
#[cfg(not(feature = "shuttle"))]
pub(crate) use spinney_journal::park_on;

#[cfg(not(feature = "shuttle"))]
mod plain {
    use std::hint::spin_loop;
    use std::sync::{self, MutexGuard, PoisonError, TryLockError};

    /// Tries before a thread parks. Each waits twice as long as the last, up to `SPINS_MAX` pauses: together some
    /// tens of microseconds, less than parking and waking costs.
    const TRIES_MAX: u32 = 20;
    const SPINS_MAX: u32 = 64;

    /// A std mutex that backs off before it parks. Critical sections take tens of nanoseconds, so a short spin
    /// usually gets the lock: with two threads on two cores this has almost three times the throughput of the bare
    /// std mutex, and as much as parking_lot, which would be another dependency.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        /// Poison is ignored: no foreign code runs under this lock, and our own cannot fail.
        #[inline]
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            match self.0.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => self.lock_contended(),
            }
        }

        #[cold]
        fn lock_contended(&self) -> MutexGuard<'_, T> {
            let mut spins = 1;
            for _ in 0..TRIES_MAX {
                (0..spins).for_each(|_| spin_loop());
                spins = SPINS_MAX.min(spins * 2);
                if let Ok(guard) = self.0.try_lock() {
                    return guard;
                }
            }
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

#[cfg(feature = "shuttle")]
mod shuttled {
    use std::sync::PoisonError;
    use std::time::Duration;

    use shuttle::sync::{self, MutexGuard};

    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    impl<T> Mutex<T> {
        #[track_caller]
        pub(crate) const fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// Shuttle does not model time: a nap never ends on its own.
    pub(crate) fn park_on<F: Future>(future: F, _nap: impl Fn() -> Option<Duration>) -> F::Output {
        shuttle::future::block_on(future)
    }
}
