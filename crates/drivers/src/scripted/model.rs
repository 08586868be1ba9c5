//! The scripted model: answers from the rules of a script, one attempt at a time. It calls nothing outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::definition::OnLost;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Deltas, Model, ModelAnswer, ModelAttempt};

use super::script::Script;
use super::turn::tokens;

/// A model that answers from a [`Script`].
///
/// Waiting needs a tokio timer, and only where the script has latencies; on a paused tokio clock they take no time.
#[derive(Debug)]
pub struct ScriptedModel {
    script: Script,
    calls: AtomicU64,
}

impl ScriptedModel {
    pub(super) const fn new(script: Script) -> Self {
        Self { script, calls: AtomicU64::new(0) }
    }

    /// How many attempts were made so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Model for ScriptedModel {
    fn call(&self, attempt: Arc<ModelAttempt>, deltas: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let script = self.script.clone();
        Box::pin(async move { script.play(attempt).await.perform(deltas).await })
    }

    /// A quarter of the bytes, rounded up. Exact: this model has no other tokenizer.
    fn tokens(&self, text: &str) -> u64 {
        tokens(text)
    }

    fn tokenizer(&self) -> Option<&str> {
        Some("scripted")
    }

    fn lost(&self) -> OnLost {
        self.script.lost()
    }

    /// The input, and what was said: stopping this model stops its bill, unless it plays a provider that bills the rest.
    fn used_when_stopped(&self, attempt: &ModelAttempt, said: &str) -> Used {
        match self.script.lost() {
            OnLost::Repeatable => {
                Used::Tokens(Usage { input: attempt.packet.tokens, output: tokens(said), ..Usage::default() })
            }
            OnLost::Presumed => Used::Unknown,
        }
    }
}
