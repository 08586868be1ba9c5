//! The states of an agent, and the one function that defines the allowed transitions.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::primitives::Body;
use crate::record::{Exit, ExitKind, WaitReason};

/// An agent's state while it lives. An ended agent keeps only its totals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentState {
    Live,
    /// The exit is decided; running work is being stopped.
    Ending(Box<EndNote>),
}

/// The decided exit, kept until everything below the agent has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndNote {
    pub exit: Exit,
    pub result: Option<Body>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Live,
    Ending,
    Ended,
}

impl Phase {
    /// Nothing follows the end, and an exit is decided once.
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

/// What an agent is doing, for views.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    Idle,
    Running,
    /// Every open call waits; the reason is that of the first one.
    Waiting(WaitReason),
    /// It or an ancestor is paused, and nothing runs.
    Paused,
    /// The tree is halted, and nothing of it runs.
    Halted,
    Ending,
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
