//! What is said in the place of messages that were cut, as the journal records it.

use crate::record::Span;
use crate::words::{Seq, limit};
use serde::{Deserialize, Serialize};

/// Of what a model call is to write a summary: marks one that is no turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Covers {
    /// Runs of messages in the window, in order; all of them were read.
    pub spans: Vec<Span>,
    /// The most tokens that tell in short what was left out, and so the summary too.
    pub folded: u32,
}

/// How a cut is told where the model of an agent was to write a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Summary {
    /// By the summary that this event brought, and by lines for what it does not cover.
    By(Seq),
    /// By lines, because there is no summary.
    Not(Unsummed),
}

/// Why there is no summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unsummed {
    /// What is left of the budget is for the turn.
    Budget,
    /// A packet that asks for it, or the summary itself, has no room in the window.
    NoRoom,
    /// The model may not be called.
    Refused,
    /// Every attempt failed, or the call was stopped.
    Failed,
    /// The process died again and again.
    Lost,
    /// It was dropped before it started.
    Cancelled,
    /// The model said nothing.
    Empty,
    /// The model wants tools instead.
    Tools,
    /// Not all that it covers leaves the window any more.
    Changed,
}

impl Unsummed {
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Budget => "what is left of the budget is for the turn",
            Self::NoRoom => "the window is too small for one",
            Self::Refused => "the model may not be called",
            Self::Failed => "the call failed",
            Self::Lost => "the call was lost",
            Self::Cancelled => "the call was dropped",
            Self::Empty => "the model said nothing",
            Self::Tools => "the model wants tools instead",
            Self::Changed => "the window has changed since",
        }
    }
}

impl Covers {
    /// The most tokens that the summary may have.
    #[must_use]
    pub fn room(&self) -> u64 {
        u64::from(self.folded).saturating_sub(limit::SUMMARY_AROUND_TOKENS)
    }
}
