//! Waits for a journal's answer without an async runtime: command-line tools, tests and benches.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Waits for a future by blocking the thread. Never use it in a task of an async runtime.
pub trait Blocking: Future + Sized {
    fn wait(self) -> Self::Output {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(self);
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(answer) => return answer,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl<F: Future> Blocking for F {}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
