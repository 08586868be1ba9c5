//! The tool port: a driver describes a tool and calls it once. What may be called, and again, is decided in the kernel.

use std::sync::Arc;

use crate::budget::Used;
use crate::context::Origin;
use crate::definition;
use crate::definition::OutputLimits;
use crate::port::Pending;
use crate::port::model::Missed;
use crate::words::{Durability, Enclosure, ToolName};

/// A tool that can be called.
pub trait Tool: Send + Sync {
    /// What the tool is.
    fn spec(&self) -> definition::ToolSpec;

    /// Calls it once. Dropping the future stops the call and everything it started.
    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, Missed>>;
}

/// One attempt at a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAttempt {
    pub origin: Arc<Origin>,
    pub tool: ToolName,
    /// The arguments: a JSON object, as text.
    pub args: String,
    /// Which attempt; the first is 1.
    pub attempt: u32,
    /// The same for every start of the same call, so that an effect can be made once.
    pub key: String,
    /// How much the agent may write into its folder.
    pub outputs: OutputLimits,
    /// What the tree's effects have to survive: with `full`, what the tool changed is on the disk before it answers.
    pub durability: Durability,
}

/// What a tool returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    /// What the model reads.
    pub text: String,
    /// Whether the tool says that it could not do what it was asked: the model is told so and decides.
    pub is_error: bool,
    /// Images and files that come with it. What is empty, too large or too many is left out, and the model is told.
    pub parts: Vec<Enclosure>,
    /// What the attempt used.
    pub used: Used,
}
