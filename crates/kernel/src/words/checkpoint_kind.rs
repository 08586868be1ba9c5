//! What made a checkpoint.

use serde::{Deserialize, Serialize};

/// What made a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointKind {
    /// The runtime, every so many turns.
    Automatic,
    /// A person, or the agent itself.
    Manual,
    /// A branch: where it begins.
    Branch,
    /// A rollback: where the agent stood before it.
    Rollback,
}

impl CheckpointKind {
    /// The kind as one word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Manual => "manual",
            Self::Branch => "branch",
            Self::Rollback => "rollback",
        }
    }
}
