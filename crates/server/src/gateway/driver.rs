//! The model driver of a gateway: it makes no call itself. It gives the connection that waits for the call permission to
//! send, and returns what that connection saw.

use std::sync::Arc;
use std::time::Duration;

use spinney_kernel::budget::Used;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{Deltas, Missed, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::words::{CallId, Fault, FaultKind, limit};
use tokio::time::timeout;

use super::pending_calls::PendingCalls;

/// The driver of every model of a tree whose calls come through a gateway.
#[derive(Debug)]
pub struct GatewayModel {
    pending_calls: Arc<PendingCalls>,
}

impl GatewayModel {
    #[must_use]
    pub const fn new(pending_calls: Arc<PendingCalls>) -> Self {
        Self { pending_calls }
    }
}

impl Model for GatewayModel {
    fn call(&self, attempt: Arc<ModelAttempt>, _deltas: Deltas) -> Pending<Result<ModelAnswer, Missed>> {
        let pending_calls = Arc::clone(&self.pending_calls);
        Box::pin(async move {
            let Some(call) = call_of(&attempt) else {
                return Err(missed("the call has no number", Used::NOTHING));
            };
            let ended = pending_calls.start(call, attempt.output_cap);
            match timeout(Duration::from_millis(limit::MODEL_CALL_MS_MAX), ended).await {
                Ok(Ok(report)) => report,
                Ok(Err(_)) | Err(_) => {
                    let used = used(&pending_calls, call);
                    Err(missed("the connection of the program ended", used))
                }
            }
        })
    }

    fn used_when_stopped(&self, attempt: &ModelAttempt, _said: &str) -> Used {
        call_of(attempt).map_or(Used::NOTHING, |call| used(&self.pending_calls, call))
    }
}

/// What a call used whose end nobody saw.
fn used(pending_calls: &PendingCalls, call: CallId) -> Used {
    if pending_calls.is_sent(call) { Used::Unknown } else { Used::NOTHING }
}

/// The number of a call is the second part of its key.
fn call_of(attempt: &ModelAttempt) -> Option<CallId> {
    attempt.key.split('/').nth(1)?.parse().ok().map(CallId)
}

fn missed(message: &str, used: Used) -> Missed {
    Missed { fault: Fault { message: message.to_owned(), ..Fault::of(FaultKind::Cut) }, used }
}
