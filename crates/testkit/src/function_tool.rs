//! A tool from a closure, for tests that need more than a script.

use std::future::ready;
use std::sync::Arc;

use spinney_kernel::definition::{Lost, Tool as Spec};
use spinney_kernel::part::Enclosure;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::Missed;
use spinney_kernel::port::tool::{Answer, Attempt, Tool};
use spinney_kernel::report::Used;

/// A tool that is a closure: `Ok` is what the model reads, `Err` too, marked as an error.
#[derive(Clone)]
pub struct FunctionTool {
    spec: Spec,
    function: Arc<Function>,
}

type Function = dyn Fn(Attempt) -> Pending<Result<(String, Vec<Enclosure>), String>> + Send + Sync;

impl FunctionTool {
    /// A tool that may wait. Give `Spec::default()` if the rest does not matter.
    pub fn new<F, W>(spec: Spec, function: F) -> Self
    where
        F: Fn(Attempt) -> W + Send + Sync + 'static,
        W: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self::enclosing(spec, move |attempt| {
            let said = function(attempt);
            async move { Ok((said.await?, Vec::new())) }
        })
    }

    /// A tool that may wait, and answers with images and files.
    pub fn enclosing<F, W>(spec: Spec, function: F) -> Self
    where
        F: Fn(Attempt) -> W + Send + Sync + 'static,
        W: Future<Output = Result<(String, Vec<Enclosure>), String>> + Send + 'static,
    {
        Self { spec, function: Arc::new(move |attempt| Box::pin(function(attempt))) }
    }

    /// A tool that answers at once.
    pub fn sync<F>(spec: Spec, function: F) -> Self
    where
        F: Fn(Attempt) -> Result<String, String> + Send + Sync + 'static,
    {
        Self::new(spec, move |attempt| ready(function(attempt)))
    }

    /// This, and calling it twice is the same as once.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.spec.lost = Lost::Repeatable;
        self
    }

    /// This, with words for the model.
    #[must_use]
    pub fn described(mut self, description: &str) -> Self {
        description.clone_into(&mut self.spec.description);
        self
    }

    /// This, with a bound on the time of one call.
    #[must_use]
    pub const fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.spec.timeout_ms = Some(timeout_ms);
        self
    }
}

impl Tool for FunctionTool {
    fn spec(&self) -> Spec {
        self.spec.clone()
    }

    /// The closure runs when the call is first polled.
    fn call(&self, attempt: Attempt) -> Pending<Result<Answer, Missed>> {
        let function = Arc::clone(&self.function);
        Box::pin(async move {
            let ((text, parts), is_error) = match function(attempt).await {
                Ok(answer) => (answer, false),
                Err(text) => ((text, Vec::new()), true),
            };
            Ok(Answer { text, is_error, parts, used: Used::NOTHING })
        })
    }
}
