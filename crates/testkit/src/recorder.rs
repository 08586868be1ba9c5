//! A recorder: wraps a model and records what it was asked, and how many calls are running.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::budget::Used;
use spinney_kernel::definition::OnLost;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{Announced, AttemptError, Deltas, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::primitives::Part;
use tokio::sync::watch;

/// A model that records every attempt.
pub struct Recorder<M> {
    model: M,
    attempts: Mutex<Vec<Arc<ModelAttempt>>>,
    out: watch::Sender<usize>,
}

/// One running call; dropped when the call ends for any reason.
struct Out(watch::Sender<usize>);

impl Drop for Out {
    fn drop(&mut self) {
        self.0.send_modify(|out| *out -= 1);
    }
}

impl<M> Recorder<M> {
    /// Wraps `model`.
    #[must_use]
    pub fn new(model: M) -> Self {
        Self { model, attempts: Mutex::default(), out: watch::Sender::new(0) }
    }

    /// The wrapped model.
    pub const fn model(&self) -> &M {
        &self.model
    }

    /// Every attempt so far, in order.
    #[must_use]
    pub fn attempts(&self) -> Vec<Arc<ModelAttempt>> {
        self.kept().clone()
    }

    /// How many calls are running now.
    #[must_use]
    pub fn out(&self) -> usize {
        *self.out.borrow()
    }

    /// Waits until this many calls are running.
    pub async fn until_out(&self, count: usize) {
        // `self` holds the sender, so only the count ends the wait.
        let _ = self.out.subscribe().wait_for(|out| *out == count).await;
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Arc<ModelAttempt>>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Model> Model for Recorder<M> {
    fn call(&self, attempt: Arc<ModelAttempt>, deltas: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        self.kept().push(Arc::clone(&attempt));
        self.out.send_modify(|out| *out += 1);
        let (out, work) = (Out(self.out.clone()), self.model.call(attempt, deltas));
        Box::pin(async move {
            let ended = work.await;
            drop(out);
            ended
        })
    }

    fn tokens(&self, text: &str) -> u64 {
        self.model.tokens(text)
    }

    fn estimate(&self, text: &str) -> Option<u64> {
        self.model.estimate(text)
    }

    fn part_tokens(&self, part: &Part, bytes: &[u8]) -> u64 {
        self.model.part_tokens(part, bytes)
    }

    fn tokenizer(&self) -> Option<&str> {
        self.model.tokenizer()
    }

    fn service(&self) -> Option<&str> {
        self.model.service()
    }

    fn quota(&self) -> Option<&str> {
        self.model.quota()
    }

    fn announced(&self) -> Announced {
        self.model.announced()
    }

    fn lost(&self) -> OnLost {
        self.model.lost()
    }

    fn used_when_stopped(&self, attempt: &ModelAttempt, said: &str) -> Used {
        self.model.used_when_stopped(attempt, said)
    }
}
