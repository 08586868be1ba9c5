//! The lock of a budget, and how a thread waits for a future. Under the feature `shuttle` both are shuttle's, so that
//! a test can try every interleaving.

#[cfg(not(feature = "shuttle"))]
pub(crate) use plain::{Mutex, block_on};
#[cfg(feature = "shuttle")]
pub(crate) use shuttled::{Mutex, block_on};

#[cfg(not(feature = "shuttle"))]
mod plain {
    use std::hint::spin_loop;
    use std::pin::pin;
    use std::sync::{self, Arc, MutexGuard, PoisonError, TryLockError};
    use std::task::{Context, Poll, Wake, Waker};
    use std::thread::{self, Thread};
    use std::time::Duration;

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

    struct Unparker(Thread);

    impl Wake for Unparker {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    /// Runs a future on this thread. It is polled when woken, and at the latest after `nap`, if that gives a
    /// duration.
    pub(crate) fn block_on<F: Future>(future: F, nap: impl Fn() -> Option<Duration>) -> F::Output {
        let mut future = pin!(future);
        let waker = Waker::from(Arc::new(Unparker(thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            match nap() {
                Some(longest) => thread::park_timeout(longest),
                None => thread::park(),
            }
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

    /// Shuttle does not model time: a nap never ends by itself.
    pub(crate) fn block_on<F: Future>(future: F, _nap: impl Fn() -> Option<Duration>) -> F::Output {
        shuttle::future::block_on(future)
    }
}
