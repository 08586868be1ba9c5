//! A tool call that a model asks for.

use serde::{Deserialize, Serialize};

/// A tool call as a model asks for it. Nothing in it is checked yet: the tool may not exist, the arguments may be
/// no JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolAsk {
    /// The id that the model gave it.
    pub id: String,
    pub tool: String,
    pub args: String,
    /// How many tokens all of it has at most, if somebody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u32>,
    /// Where it hands another agent a goal or a message: how many tokens that adds at most to what the other reads,
    /// if somebody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_tokens: Option<u32>,
}

impl ToolAsk {
    /// A tool call whose tokens nobody counted: its bytes count in their place.
    #[must_use]
    pub fn new(id: impl Into<String>, tool: impl Into<String>, args: impl Into<String>) -> Self {
        Self { id: id.into(), tool: tool.into(), args: args.into(), tokens: None, told_tokens: None }
    }

    /// Whether its arguments are JSON to their end.
    pub(crate) fn is_whole(&self) -> bool {
        serde_json::from_str::<serde::de::IgnoredAny>(&self.args).is_ok()
    }

    /// The most tokens that it can have: what was counted, or else its bytes.
    #[must_use]
    pub fn tokens_max(&self) -> u64 {
        let bytes = (self.id.len() + self.tool.len() + self.args.len()) as u64;
        self.tokens.map_or(bytes, |tokens| u64::from(tokens).min(bytes))
    }
}
