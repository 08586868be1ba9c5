//! What replaces messages that were cut, as the journal records it.

use crate::primitives::{Seq, limit};
use crate::record::Span;
use serde::{Deserialize, Serialize};

/// The messages that a call summarizes. Marks a model call that is not a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryRange {
    /// Runs of messages in the window, in order; all of them were read.
    pub spans: Vec<Span>,
    /// The most tokens of the digest of left-out messages, which contains the summary.
    pub folded: u32,
}

/// What replaces a cut when a summary was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Summary {
    /// The summary in this event, and lines for what it does not cover.
    By(Seq),
    /// Lines, because there is no summary.
    Not(NoSummary),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoSummary {
    /// What is left of the budget is for the turn.
    Budget,
    /// The packet that requests it, or the summary itself, does not fit the window.
    NoRoom,
    /// The model must not be called.
    Refused,
    /// Every attempt failed, or the call was stopped.
    Failed,
    /// The process died repeatedly.
    Lost,
    /// It was cancelled before it started.
    Cancelled,
    /// The model returned no text.
    Empty,
    /// The model asked for tools instead.
    Tools,
    /// Some of what it covers no longer leaves the window.
    Changed,
}

impl NoSummary {
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Budget => "the rest of the budget is needed for the turn",
            Self::NoRoom => "the window is too small for one",
            Self::Refused => "the model may not be called",
            Self::Failed => "the call failed",
            Self::Lost => "the call was lost",
            Self::Cancelled => "the call was dropped",
            Self::Empty => "the model said nothing",
            Self::Tools => "the model asked for tools instead",
            Self::Changed => "the window has changed since",
        }
    }
}

impl SummaryRange {
    #[must_use]
    pub fn room(&self) -> u64 {
        u64::from(self.folded).saturating_sub(limit::SUMMARY_AROUND_TOKENS)
    }
}
