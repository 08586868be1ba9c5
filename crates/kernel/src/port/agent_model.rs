//! Lets a running tool ask the model of the agent that called it, in that agent's budget.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use crate::port::Pending;
use crate::primitives::ModelName;

/// Who asks the model for a tool.
pub trait ModelPort: Send + Sync {
    /// Asks, and waits for the answer. Dropping the future withdraws the call, unless it has started: then it is booked.
    fn ask(&self, message: String, output_cap: u64) -> Pending<Result<ModelReply, NoReply>>;
}

/// What the model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelReply {
    pub text: String,
    /// Its name in the tree.
    pub model: ModelName,
    /// Whether it was cut at its output cap.
    pub is_cut: bool,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoReply {
    /// The call was not made: why.
    NotAsked(String),
    /// The call failed: the kind of fault. The rest is in the journal.
    Failed(String),
    /// The tool call, or its tree, ended before.
    Ended,
}

/// A model that a tool may ask, if there is one.
#[derive(Clone, Default)]
pub struct ModelHandle(Option<Arc<dyn ModelPort>>);

impl ModelHandle {
    #[must_use]
    pub fn new(port: impl ModelPort + 'static) -> Self {
        Self(Some(Arc::new(port)))
    }

    /// Asks, and waits for the answer. The model reads the message and nothing else.
    ///
    /// # Errors
    /// If there is none.
    pub fn ask(&self, message: String, output_cap: u64) -> Pending<Result<ModelReply, NoReply>> {
        match &self.0 {
            Some(port) => port.ask(message, output_cap),
            None => Box::pin(ready(Err(NoReply::NotAsked("there is no model to ask".to_owned())))),
        }
    }
}

impl PartialEq for ModelHandle {
    /// Always equal: what is called does not depend on it.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ModelHandle {}

impl fmt::Debug for ModelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelHandle")
    }
}
