//! Which clock of an agent.

use serde::{Deserialize, Serialize};

/// Which clock of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// How long it may take, with everything below it. Stands still while the whole tree waits for a person.
    Timeout,
    /// How long it may work: runs while a model or a tool of its own runs.
    Active,
}

impl ClockKind {
    /// Every kind there is.
    pub const ALL: [Self; 2] = [Self::Timeout, Self::Active];
}
