//! What made a checkpoint.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointKind {
    /// The runtime, at a fixed interval of turns.
    Automatic,
    /// A person, or the agent itself.
    Manual,
    /// The point where a branch begins.
    Branch,
    /// The agent's state just before a rollback.
    Rollback,
}

impl CheckpointKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Manual => "manual",
            Self::Branch => "branch",
            Self::Rollback => "rollback",
        }
    }
}
