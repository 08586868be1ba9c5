//! A minimal executor: futures are polled by hand, and wakes are counted.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A future and how often it was woken.
pub(crate) struct Task<'a, T> {
    future: Option<Boxed<'a, T>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<'a, T> Task<'a, T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'a) -> Self {
        Self { future: Some(Box::pin(future)), wakes: Arc::default() }
    }

    /// Polls it once, which must not complete it.
    pub(crate) fn started(future: impl Future<Output = T> + Send + 'a) -> Self {
        let mut task = Self::new(future);
        assert!(task.poll().is_none(), "the future ended at once");
        task
    }

    pub(crate) fn poll(&mut self) -> Option<T> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        match self.future.as_mut()?.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => None,
            Poll::Ready(output) => {
                self.future = None;
                Some(output)
            }
        }
    }

    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }
}

/// Runs a future that never waits for another thread.
pub(crate) fn now<T>(future: impl Future<Output = T> + Send) -> T {
    Task::new(future).poll().unwrap()
}

/// Polls woken tasks in turn until all have completed.
pub(crate) fn run_all<T>(mut tasks: Vec<Task<'_, T>>) -> Vec<T> {
    let mut outputs = Vec::new();
    let mut seen: Vec<Option<usize>> = vec![None; tasks.len()];
    while outputs.len() < tasks.len() {
        let mut moved = false;
        for (task, seen) in tasks.iter_mut().zip(&mut seen) {
            if *seen != Some(task.wakes()) && task.future.is_some() {
                *seen = Some(task.wakes());
                moved = true;
                outputs.extend(task.poll());
            }
        }
        assert!(moved, "{} tasks wait for ever", tasks.len() - outputs.len());
    }
    outputs
}

/// Yields to the other tasks, once.
pub(crate) async fn pause() {
    let mut paused = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
