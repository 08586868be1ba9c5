//! The tool port: a driver describes a tool and calls it once. The kernel decides what may be called, and whether to
//! retry.

use std::sync::Arc;

use crate::budget::Used;
use crate::context::Origin;
use crate::definition;
use crate::definition::OutputLimits;
use crate::port::Pending;
use crate::port::model::Missed;
use crate::words::{Durability, Enclosure, ToolName};

pub trait Tool: Send + Sync {
    fn spec(&self) -> definition::ToolSpec;

    /// Calls it once. Dropping the future stops the call and everything it started.
    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, Missed>>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAttempt {
    pub origin: Arc<Origin>,
    pub tool: ToolName,
    /// A JSON object, as text.
    pub args: String,
    /// The first is 1.
    pub attempt: u32,
    /// Idempotency key: the same for every start of the same call.
    pub key: String,
    /// How much the agent may write into its folder.
    pub outputs: OutputLimits,
    /// The tree's durability: with `full`, the tool's changes are on disk before it answers.
    pub durability: Durability,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    pub text: String,
    /// Whether the tool reports an error. The model sees it and decides what to do.
    pub is_error: bool,
    /// Images and files. Empty, oversized or excess ones are left out, and the model is notified.
    pub parts: Vec<Enclosure>,
    pub used: Used,
}
