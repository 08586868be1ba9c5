//! A trial of a model: one call with a tiny prompt and the least output that its provider allows, or only a
//! connection to its server.

use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::definition::ModelProvider;
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::primitives::Fault;

use super::model::ProviderModel;
use super::settle::{fault, missed, used};
use crate::http::Reached;
use crate::wire::{WireFaultKind, WireMessage, WirePart, WireRequest};

/// The whole prompt.
const PROMPT: &str = "Say hi.";

/// A trial that failed.
#[derive(Debug, PartialEq, Eq)]
pub struct TrialFault {
    /// Whether there was a response at all.
    pub is_answered: bool,
    pub fault: Fault,
    pub used: Used,
}

impl ProviderModel {
    /// Makes one small call with the model's own settings and returns what it used.
    ///
    /// # Errors
    /// What is wrong, and whether the server answered.
    pub async fn try_out(&self) -> Result<Used, TrialFault> {
        let prompt = WireMessage::User(vec![WirePart::Text(PROMPT.to_owned())]);
        let request = WireRequest {
            model: self.name().to_owned(),
            messages: vec![prompt],
            output_cap: self.least_output(),
            params: self.params().clone(),
            ..WireRequest::default()
        };
        match self.client().ask(self.wire_call(request), &mut |_| {}).await {
            Ok(answer) => Ok(used(&answer.usage)),
            Err(failed) if is_output_cap(failed.fault.kind, &failed.fault.message) => Ok(Used::Unknown),
            Err(failed) => {
                let is_answered = match failed.reached {
                    Reached::NotSent => false,
                    Reached::Refused => true,
                    Reached::Sent => failed.fault.kind != WireFaultKind::Timeout,
                };
                let AttemptError { fault, used } = missed(*failed, self.served_from());
                Err(TrialFault { is_answered, fault, used })
            }
        }
    }

    /// Finds out whether its server answers. Sends no key and costs nothing.
    ///
    /// # Errors
    /// If there is no connection, or no response in time.
    pub async fn reach(&self) -> Result<(), TrialFault> {
        let reached = self.client().reach(self.server()).await;
        reached.map_err(|failed| TrialFault {
            is_answered: false,
            fault: fault(failed),
            used: Used::Tokens(Usage::default()),
        })
    }

    /// The smallest output cap that the provider takes.
    const fn least_output(&self) -> u64 {
        match self.provider() {
            ModelProvider::OpenAi | ModelProvider::OpenAiChat => 16,
            ModelProvider::Anthropic
            | ModelProvider::Gemini
            | ModelProvider::Ollama
            | ModelProvider::OpenAiCompatible => 1,
        }
    }
}

/// Models of OpenAI that reason call it an error if the cap is reached before the answer begins. The model works.
fn is_output_cap(kind: WireFaultKind, message: &str) -> bool {
    kind == WireFaultKind::BadRequest && message.contains("output limit was reached")
}
