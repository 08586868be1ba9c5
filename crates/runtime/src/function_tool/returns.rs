//! The return types of a tool's closure: text as it is, anything else as JSON, with optional images, files and cost.

use serde::Serialize;
use serde_json::Value;
use spinney_kernel::primitives::Enclosure;

/// What the closure of a [`FunctionTool`](super::FunctionTool) returns: text, which the model reads unchanged, any
/// other value that serializes to JSON, or [`Answered`] around one.
pub trait IntoToolAnswer: sealed::IntoToolAnswer {}

impl<T: sealed::IntoToolAnswer> IntoToolAnswer for T {}

/// A value with images, files and a cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<T> {
    value: T,
    parts: Vec<Enclosure>,
    cost_nanos: Option<u64>,
}

impl<T: Serialize> Answered<T> {
    /// Only a value.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self { value, parts: Vec::new(), cost_nanos: None }
    }

    /// Adds images and files. Empty, oversized or excess ones are left out, and the model is notified.
    #[must_use]
    pub fn with_parts(mut self, parts: impl IntoIterator<Item = Enclosure>) -> Self {
        self.parts.extend(parts);
        self
    }

    /// Sets what the call cost.
    #[must_use]
    pub const fn cost_nanos(mut self, nanos: u64) -> Self {
        self.cost_nanos = Some(nanos);
        self
    }
}

/// The output before it becomes an answer.
#[derive(Debug)]
pub struct ToolOutput {
    pub(super) text: String,
    pub(super) parts: Vec<Enclosure>,
    pub(super) cost_nanos: Option<u64>,
}

pub(super) mod sealed {
    use super::ToolOutput;

    pub trait IntoToolAnswer {
        fn give(self) -> Result<ToolOutput, String>;
    }
}

impl<T: Serialize> sealed::IntoToolAnswer for T {
    fn give(self) -> Result<ToolOutput, String> {
        Ok(ToolOutput { text: text(&self)?, parts: Vec::new(), cost_nanos: None })
    }
}

impl<T: Serialize> sealed::IntoToolAnswer for Answered<T> {
    fn give(self) -> Result<ToolOutput, String> {
        let Self { value, parts, cost_nanos } = self;
        Ok(ToolOutput { text: text(&value)?, parts, cost_nanos })
    }
}

fn text(value: &impl Serialize) -> Result<String, String> {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => Ok(text),
        Ok(value) => Ok(value.to_string()),
        Err(error) => Err(format!("the tool's result cannot be written as JSON: {error}")),
    }
}
