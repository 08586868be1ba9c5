//! Lets a running tool ask a person, through the agent that called it.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use crate::port::Pending;

/// Who asks for a tool.
pub trait PersonPort: Send + Sync {
    /// Asks, and waits for the answer. Dropping the future withdraws the question.
    fn ask(&self, question: String, timeout_ms: u64) -> Pending<Result<String, NoAnswer>>;
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// It was not asked: why.
    NotAsked(String),
    /// Nobody answered in time.
    Expired,
    /// The call, or its tree, ended before.
    Ended,
}

/// A person whom a tool may ask, if there is one.
#[derive(Clone, Default)]
pub struct PersonHandle(Option<Arc<dyn PersonPort>>);

impl PersonHandle {
    #[must_use]
    pub fn new(port: impl PersonPort + 'static) -> Self {
        Self(Some(Arc::new(port)))
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// If there is none.
    pub fn ask(&self, question: String, timeout_ms: u64) -> Pending<Result<String, NoAnswer>> {
        match &self.0 {
            Some(port) => port.ask(question, timeout_ms),
            None => Box::pin(ready(Err(NoAnswer::NotAsked("there is nobody to ask".to_owned())))),
        }
    }
}

impl PartialEq for PersonHandle {
    /// Always equal: what is called does not depend on it.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for PersonHandle {}

impl fmt::Debug for PersonHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PersonHandle")
    }
}
