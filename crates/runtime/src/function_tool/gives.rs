//! What the closure of a tool gives: text as it is, anything else as JSON, with images and files or a cost if there are
//! any.

use serde::Serialize;
use serde_json::Value;
use spinney_kernel::words::Enclosure;

/// What the closure of a [`FunctionTool`](super::FunctionTool) gives: text, which the model reads as it is, any other
/// value that can be written as JSON, or [`Answered`] around one.
pub trait Gives: sealed::Gives {}

impl<T: sealed::Gives> Gives for T {}

/// A value with what belongs to it.
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

    /// This, and images and files. What is empty, too large or too many is left out, and the model is told.
    #[must_use]
    pub fn with_parts(mut self, parts: impl IntoIterator<Item = Enclosure>) -> Self {
        self.parts.extend(parts);
        self
    }

    /// This, and what the call cost by itself.
    #[must_use]
    pub const fn cost_nanos(mut self, nanos: u64) -> Self {
        self.cost_nanos = Some(nanos);
        self
    }
}

/// What the tool makes an answer of.
#[derive(Debug)]
pub struct ToolOutput {
    pub(super) text: String,
    pub(super) parts: Vec<Enclosure>,
    pub(super) cost_nanos: Option<u64>,
}

pub(super) mod sealed {
    use super::ToolOutput;

    pub trait Gives {
        fn give(self) -> Result<ToolOutput, String>;
    }
}

impl<T: Serialize> sealed::Gives for T {
    fn give(self) -> Result<ToolOutput, String> {
        Ok(ToolOutput { text: text(&self)?, parts: Vec::new(), cost_nanos: None })
    }
}

impl<T: Serialize> sealed::Gives for Answered<T> {
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
