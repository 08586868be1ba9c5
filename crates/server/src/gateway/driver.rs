//! The model driver of a gateway: it makes no call itself. It gives the connection that waits for the call permission to
//! send, and returns what that connection saw.

use std::sync::Arc;
use std::time::Duration;

use spinney_kernel::budget::Used;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Deltas, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::primitives::{CallId, Fault, FaultKind, limit};
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
    fn call(
        &self,
        attempt: Arc<ModelAttempt>,
        _deltas: Deltas,
    ) -> Pending<Result<ModelAnswer, AttemptError>> {
        let pending_calls = Arc::clone(&self.pending_calls);
        Box::pin(async move {
            let call = attempt.call;
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
        used(&self.pending_calls, attempt.call)
    }
}

/// What a call used whose end was not seen.
fn used(pending_calls: &PendingCalls, call: CallId) -> Used {
    if pending_calls.is_sent(call) { Used::Unknown } else { Used::NOTHING }
}

fn missed(message: &str, used: Used) -> AttemptError {
    AttemptError { fault: Fault { message: message.to_owned(), ..Fault::new(FaultKind::Cut) }, used }
}

#[cfg(test)]
mod tests {
    use spinney_kernel::context::{Origin, Packet};
    use spinney_kernel::primitives::TreeId;

    use super::*;

    /// A key is opaque, whatever it looks like: the attempt says which call it is.
    #[tokio::test]
    async fn a_call_is_found_by_its_id_and_not_by_its_key() {
        let pending_calls = Arc::new(PendingCalls::new());
        let path = ["root".parse().unwrap()].into();
        let (tree, role) = (TreeId::new([7; 16]), "root".parse().unwrap());
        let origin = Arc::new(Origin { tree, path, role, goal: "Go.".into() });
        let (key, model) = ("tree/8/1".to_owned(), "m".parse().unwrap());
        let attempt = ModelAttempt::new(origin, CallId(7), key, model, Packet::default());
        let expected = pending_calls.expect(CallId(7));
        let connection = async {
            let permit = expected.permit.await.unwrap();
            permit.end.send(Ok(ModelAnswer::text("seven"))).unwrap();
        };
        let model = GatewayModel::new(Arc::clone(&pending_calls));
        let call = model.call(Arc::new(attempt), Arc::new(|_, _| ()));
        let (answer, ()) = tokio::join!(call, connection);
        assert_eq!(answer.unwrap().text, "seven");
    }
}
