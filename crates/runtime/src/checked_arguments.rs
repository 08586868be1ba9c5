//! A tool whose calls are checked against the schema that it describes, so that it only sees arguments of that form.

use std::sync::Arc;

use spinney_kernel::definition::ToolSpec;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};

use crate::output_schema;

/// Answers calls that do not match with an error that says what is expected.
pub struct CheckedArguments {
    tool: Arc<dyn Tool>,
    schema: String,
}

impl CheckedArguments {
    /// Checks the calls of this tool.
    #[must_use]
    pub fn new(tool: Arc<dyn Tool>) -> Self {
        let schema = tool.spec().schema;
        Self { tool, schema }
    }

    /// The same for a tool whose schema somebody else wrote.
    ///
    /// # Errors
    /// Why its schema cannot be used, in words.
    pub fn with_usable_schema(tool: Arc<dyn Tool>) -> Result<Self, String> {
        let checked = Self::new(tool);
        match output_schema::check(&checked.schema) {
            Ok(()) => Ok(checked),
            Err(wrong) if wrong.path.is_empty() => Err(wrong.expected),
            Err(wrong) => Err(format!("{} at {}", wrong.expected, wrong.path)),
        }
    }
}

impl Tool for CheckedArguments {
    fn spec(&self) -> ToolSpec {
        self.tool.spec()
    }

    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>> {
        match output_schema::fit(&self.schema, &attempt.args) {
            Ok(_) => self.tool.call(attempt),
            Err(mismatch) => {
                let text = format!("`{}` was not called: {}", attempt.tool, mismatch.describe());
                Box::pin(async move { Ok(ToolAnswer::failed(text)) })
            }
        }
    }
}
