//! Waits for a future without an async runtime: the budget handle, tests and benches.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Waits for a future by blocking the thread, in tests and benches. `cargo xtask tidy` refuses it elsewhere: a store that
/// needs the thread would never answer.
#[doc(hidden)]
pub trait Blocking: Future + Sized {
    fn wait(self) -> Self::Output {
        park_on(self, || None)
    }
}

impl<F: Future> Blocking for F {}

/// Runs a future on this thread. It is polled when woken, and at the latest after `nap`, if that gives a duration.
pub fn park_on<F: Future>(future: F, nap: impl Fn() -> Option<Duration>) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
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

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
