//! Which limit held a model call back before it was sent.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The limit that held a call back. All of them are kept by the process that runs the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldBy {
    /// The provider failed too often, and is not called for a while.
    Breaker,
    /// The provider said how many calls it takes, or when to come back.
    Provider,
    /// The rate of the model in the tree file.
    ModelRate,
    /// The rate of the agent's role in the tree file.
    RoleRate,
    /// The rate of the tree in the tree file.
    TreeRate,
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Breaker => "the breaker of its provider",
            Self::Provider => "the limit of its provider",
            Self::ModelRate => "the rate of its model",
            Self::RoleRate => "the rate of its role",
            Self::TreeRate => "the rate of the tree",
        })
    }
}
