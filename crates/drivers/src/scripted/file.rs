//! The keys of a script file. An unknown key is an error; other files define what the keys mean.

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;
use spinney_kernel::definition::OnLost;
use spinney_kernel::primitives::{ByName, ToolName};

use super::fail::Fail;
use super::when::When;

/// A whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    /// How to treat a call whose end was never recorded.
    pub(super) lost: Option<OnLost>,
    pub(super) rules: Vec<Spanned<RuleText>>,
    pub(super) tools: ByName<ToolName, Spanned<ToolText>>,
}

/// A rule as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RuleText {
    pub(super) when: When,
    /// Before the first token.
    pub(super) think_ms: u64,
    /// Between chunks.
    pub(super) chunk_ms: u64,
    pub(super) think: String,
    pub(super) say: Option<Spanned<String>>,
    pub(super) call: Vec<CallText>,
    pub(super) usage: UsageText,
    pub(super) fail: Option<Fail>,
    pub(super) hang: bool,
    /// Where the model says that its answer was cut.
    pub(super) cut: Option<CutText>,
}

/// Where an answer is cut, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CutText {
    OutputCap,
}

/// A tool call as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallText {
    /// Not checked: a script may call a tool that does not exist.
    pub(super) tool: Spanned<String>,
    /// A text is taken as it is, so it may be no JSON; an object if absent.
    #[serde(default)]
    pub(super) args: Option<Value>,
    #[serde(default)]
    pub(super) id: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct UsageText {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
}

/// A tool as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ToolText {
    pub(super) description: String,
    pub(super) repeatable: bool,
    pub(super) think_ms: u64,
    pub(super) say: Option<Spanned<String>>,
    pub(super) error: Option<Spanned<String>>,
    pub(super) fail: Option<Fail>,
    pub(super) hang: bool,
}
