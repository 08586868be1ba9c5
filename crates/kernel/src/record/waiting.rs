//! What a call waits for before it starts or ends.

use std::fmt;

use crate::budget::Amounts;
use serde::{Deserialize, Serialize};

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Other holds to settle; `ask` is what it needs.
    Budget {
        /// What it needs at every account up the chain.
        ask: Amounts,
    },
    /// Another effect to end: as many run as may.
    Slot,
    /// The model to take calls again.
    Rate,
    /// The pause before a retry to pass.
    Backoff,
    /// Somebody to unpause the agent.
    Paused,
    /// Somebody to run the tree again.
    Suspended,
    /// Somebody to raise the tree's ceiling.
    Halted,
    Children,
    /// A message to come.
    Message,
    /// A person to answer.
    Person,
}

impl Why {
    /// Whether the call may start as soon as something else changes, without a report of its own.
    pub(crate) const fn is_startable(self) -> bool {
        match self {
            Self::Budget { .. } | Self::Slot | Self::Rate | Self::Paused | Self::Suspended | Self::Halted => {
                true
            }
            Self::Backoff | Self::Children | Self::Message | Self::Person => false,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Budget { .. } => "budget",
            Self::Slot => "slot",
            Self::Rate => "rate",
            Self::Backoff => "backoff",
            Self::Paused => "paused",
            Self::Suspended => "suspended",
            Self::Halted => "halted",
            Self::Children => "children",
            Self::Message => "message",
            Self::Person => "person",
        })
    }
}
