//! Which clock of an agent.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// How long the agent and everything below it may take. Paused while the whole tree waits for a person.
    Timeout,
    /// How long it may work: runs while one of its own models or tools runs.
    Active,
}

impl ClockKind {
    pub const ALL: [Self; 2] = [Self::Timeout, Self::Active];
}
