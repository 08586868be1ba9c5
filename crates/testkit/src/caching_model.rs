//! A model whose provider caches prompts: what agents of one role share is billed as cached, from the first token of
//! the first answer on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::context::Message;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, DeltaKind, Deltas, Model, ModelAnswer, ModelAttempt};

/// Answers every call in one word, after two pauses.
pub struct CachingModel {
    cached: Arc<Mutex<BTreeSet<String>>>,
    first_token: Duration,
    rest: Duration,
}

impl CachingModel {
    /// With these pauses before the first token, and from there to the end.
    #[must_use]
    pub fn new(first_token: Duration, rest: Duration) -> Self {
        Self { cached: Arc::default(), first_token, rest }
    }
}

impl Model for CachingModel {
    fn call(&self, attempt: Arc<ModelAttempt>, deltas: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        let (first_token, rest, cached) = (self.first_token, self.rest, Arc::clone(&self.cached));
        Box::pin(async move {
            let system = attempt.packet.messages.iter().find_map(|message| match message.as_ref() {
                Message::System(system) => Some((system.to_string(), system.shared_bytes())),
                _ => None,
            });
            let (text, shared_bytes) = system.unwrap_or_default();
            let (shared, own) = text.split_at(shared_bytes);
            let cached = || cached.lock().unwrap_or_else(PoisonError::into_inner);
            let (own, shared_tokens) = (own.len() as u64, shared.len() as u64);
            let usage = if cached().contains(shared) {
                Usage { input: own, cached_input: shared_tokens, output: 1, ..Usage::default() }
            } else {
                Usage { input: own, cache_write: shared_tokens, output: 1, ..Usage::default() }
            };
            tokio::time::sleep(first_token).await;
            cached().insert(shared.to_owned());
            deltas(DeltaKind::Text, "done");
            tokio::time::sleep(rest).await;
            Ok(ModelAnswer::text("done").with_used(Used::Tokens(usage)))
        })
    }
}
