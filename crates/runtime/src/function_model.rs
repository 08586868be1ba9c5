//! Models from closures: for tests, first experiments, and programs that call their provider themselves.

use std::sync::Arc;

use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, DeltaKind, Deltas, Model, ModelAnswer, ModelAttempt};

/// A model that is a closure. It gets the attempt with its whole packet and returns a complete answer; nothing is
/// streamed. A model that streams, or counts tokens better than by bytes, implements [`Model`] itself.
#[derive(Clone)]
pub struct FunctionModel {
    function: Arc<Function>,
    service: Option<Arc<str>>,
}

type Function = dyn Fn(Arc<ModelAttempt>) -> Pending<Result<ModelAnswer, AttemptError>> + Send + Sync;

impl FunctionModel {
    /// A model that returns the closure's answer. Dropping the call drops the closure's future.
    pub fn new<F, W>(function: F) -> Self
    where
        F: Fn(Arc<ModelAttempt>) -> W + Send + Sync + 'static,
        W: Future<Output = Result<ModelAnswer, AttemptError>> + Send + 'static,
    {
        Self { function: Arc::new(move |attempt| Box::pin(function(attempt))), service: None }
    }

    /// Names the service that answers. Models of one service share a circuit breaker: after five failures in a row,
    /// it is not called for a minute, and then one call finds out whether it works again.
    #[must_use]
    pub fn with_service(mut self, service: &str) -> Self {
        self.service = Some(service.into());
        self
    }
}

impl Model for FunctionModel {
    fn call(&self, attempt: Arc<ModelAttempt>, deltas: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        let answer = (self.function)(attempt);
        Box::pin(async move {
            let answer = answer.await?;
            deltas(DeltaKind::Reasoning, &answer.reasoning);
            deltas(DeltaKind::Text, &answer.text);
            Ok(answer)
        })
    }

    fn service(&self) -> Option<&str> {
        self.service.as_deref()
    }
}
