//! Reasons why a call waits before it starts or ends.

use std::fmt;

use crate::budget::Amounts;
use serde::{Deserialize, Serialize};

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// Other holds must settle first.
    Budget {
        /// The amount it needs at every account up the chain.
        ask: Amounts,
    },
    /// A ceiling below the root must be raised first: a call of a program that is an agent of the tree.
    Ceiling,
    /// As many effects run as are allowed.
    Slot,
    /// A rate limit.
    Rate,
    /// Its provider is down; it is asked again later.
    Breaker,
    /// Another call with the same prompt prefix is filling the provider's cache.
    Cache,
    /// The pause before a retry.
    Backoff,
    /// Its agent is paused.
    Paused,
    /// The tree is suspended.
    Suspended,
    /// The tree is halted until its ceiling is raised.
    Halted,
    Children,
    Message,
    Person,
}

impl WaitReason {
    /// Whether a change elsewhere can start the call, without its own report.
    pub(crate) const fn is_startable(self) -> bool {
        match self {
            Self::Budget { .. }
            | Self::Ceiling
            | Self::Slot
            | Self::Rate
            | Self::Breaker
            | Self::Cache
            | Self::Paused
            | Self::Suspended
            | Self::Halted => true,
            Self::Backoff | Self::Children | Self::Message | Self::Person => false,
        }
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Budget { .. } => "budget",
            Self::Ceiling => "ceiling",
            Self::Slot => "slot",
            Self::Rate => "rate",
            Self::Breaker => "breaker",
            Self::Cache => "cache",
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
