//! A tool call that a model asks for.

use serde::{Deserialize, Serialize};

use crate::primitives::TokenCount;

/// A tool call as a model asks for it. Nothing is validated yet: the tool may not exist, the arguments may not be
/// JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolAsk {
    /// The model's own id for it.
    pub id: String,
    pub tool: String,
    pub args: String,
    /// Its tokens, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenCount>,
    /// If it passes a goal or a message to another agent: the tokens that this adds to the other's packet, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_tokens: Option<TokenCount>,
}

/// A tool call of a model that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedAsk {
    /// Its place among the calls of the answer, from 0.
    pub place: u32,
    pub reason: String,
}

impl ToolAsk {
    /// An uncounted tool call: its bytes serve as the bound.
    #[must_use]
    pub fn new(id: impl Into<String>, tool: impl Into<String>, args: impl Into<String>) -> Self {
        Self { id: id.into(), tool: tool.into(), args: args.into(), tokens: None, told_tokens: None }
    }

    /// Whether its arguments are complete JSON.
    pub(crate) fn is_whole(&self) -> bool {
        serde_json::from_str::<serde::de::IgnoredAny>(&self.args).is_ok()
    }

    /// Its tokens: the count if there is one, else by its bytes.
    #[must_use]
    pub fn counted(&self) -> TokenCount {
        let bytes = self.id.len() + self.tool.len() + self.args.len();
        self.tokens.map_or(TokenCount::of_bytes(bytes), |tokens| tokens.at_most(bytes as u64))
    }
}
