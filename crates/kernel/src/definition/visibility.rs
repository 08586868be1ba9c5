//! What watchers are shown of agents and tools, and what is redacted. Neither changes a decision: both are kept here so
//! that the journal has them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::primitives::{ByName, ToolName};

/// How much watchers without the right to everything are shown of an agent, or of the calls of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", expecting = "`full`, `summary` or `hidden`")]
pub enum Visibility {
    /// Everything.
    #[default]
    Full,
    /// That something happened, who did it and what it cost; no texts.
    Summary,
    /// Nothing of what happens inside.
    Hidden,
}

/// How much is shown of the agents of one role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoleVisibility {
    pub agent: Visibility,
    /// Their calls of single tools. A call is never shown in more detail than its agent.
    #[serde(skip_serializing_if = "ByName::is_empty")]
    pub tools: ByName<ToolName, Visibility>,
}

impl RoleVisibility {
    /// Whether everything is shown to everybody.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.agent == Visibility::Full && self.tools.values().all(|tool| *tool == Visibility::Full)
    }

    #[must_use]
    pub fn of_tool(&self, tool: &str) -> Visibility {
        let of_tool = self.tools.iter().find(|(name, _)| name.as_str() == tool).map(|(_, of_tool)| *of_tool);
        of_tool.unwrap_or_default().max(self.agent)
    }
}

/// What is redacted of a tree, beside what looks like a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedactionSpec {
    /// The variables whose values are secret, by name. The values are never here.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub variables: BTreeSet<String>,
    /// Whether the journal has no secrets either: answers and outputs are redacted before they are reported.
    #[serde(skip_serializing_if = "crate::primitives::is_false")]
    pub journal: bool,
}

impl RedactionSpec {
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
