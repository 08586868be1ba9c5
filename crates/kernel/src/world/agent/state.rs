//! The states of an agent, and the one function that says which may follow which.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::record::{Exit, ExitKind, Why};
use crate::words::Body;

/// Where an agent is in its life. An agent that ended keeps no state but its totals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// It may ask for work.
    Live,
    /// How it ends is decided; what runs is being stopped.
    Ending(Box<Farewell>),
}

/// How an agent ends, kept until all below it is still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Farewell {
    pub exit: Exit,
    /// What it has to show.
    pub result: Option<Body>,
}

/// The three phases of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It may ask for work.
    Live,
    /// It is being stopped.
    Ending,
    Ended,
}

impl Phase {
    /// Whether `next` may follow. Nothing follows the end, and how an agent ends is decided once.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        matches!((self, next), (Self::Live, Self::Ending | Self::Ended) | (Self::Ending, Self::Ended))
    }
}

impl AgentState {
    #[must_use]
    pub const fn phase(&self) -> Phase {
        match self {
            Self::Live => Phase::Live,
            Self::Ending(_) => Phase::Ending,
        }
    }
}

/// What an agent is doing, for those who look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// It has no open call.
    Idle,
    /// At least one call runs.
    Running,
    /// Every open call waits; this is what the first one waits for.
    Waiting(Why),
    /// It, or an agent above it, is paused and nothing runs.
    Paused,
    /// The tree is halted and nothing of it runs.
    Halted,
    /// It is being stopped.
    Ending,
    /// It is over.
    Ended(ExitKind),
}

impl fmt::Display for AgentStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Running => f.write_str("running"),
            Self::Waiting(why) => write!(f, "waiting: {why}"),
            Self::Paused => f.write_str("paused"),
            Self::Halted => f.write_str("halted"),
            Self::Ending => f.write_str("ending"),
            Self::Ended(exit) => write!(f, "{exit}"),
        }
    }
}
