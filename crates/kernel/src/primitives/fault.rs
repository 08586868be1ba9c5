//! Faults: something outside failed. A driver makes one attempt and names the kind of failure; this file decides
//! whether a retry makes sense.

use serde::{Deserialize, Serialize};

use crate::primitives::{cut, limit};

/// One failed attempt, as its driver saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    pub kind: FaultKind,
    /// The error message from outside, bounded and free of secrets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The pause that the other side asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// The kinds of failure that call for different reactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    RateLimit,
    /// The other side failed.
    Server,
    /// The other side is over capacity.
    Overloaded,
    /// No answer in time.
    Timeout,
    /// The answer was cut off.
    Cut,
    /// Wrong or missing key.
    Auth,
    /// The account behind the key has no money left.
    OutOfCredit,
    /// The other side rejected the request as malformed.
    Invalid,
    /// The request has more tokens than the model accepts.
    ContextTooLong,
    /// The other side withheld the answer.
    ContentFilter,
    /// The model declined to answer.
    Declined,
    /// We stopped the call ourselves.
    Stopped,
}

impl FaultKind {
    pub const ALL: [Self; 12] = [
        Self::RateLimit,
        Self::Server,
        Self::Overloaded,
        Self::Timeout,
        Self::Cut,
        Self::Auth,
        Self::OutOfCredit,
        Self::Invalid,
        Self::ContextTooLong,
        Self::ContentFilter,
        Self::Declined,
        Self::Stopped,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::Server => "server",
            Self::Overloaded => "overloaded",
            Self::Timeout => "timeout",
            Self::Cut => "cut",
            Self::Auth => "auth",
            Self::OutOfCredit => "out_of_credit",
            Self::Invalid => "invalid",
            Self::ContextTooLong => "context_too_long",
            Self::ContentFilter => "content_filter",
            Self::Declined => "declined",
            Self::Stopped => "stopped",
        }
    }
}

impl Fault {
    #[must_use]
    pub const fn new(kind: FaultKind) -> Self {
        Self { kind, message: String::new(), retry_after_ms: None }
    }

    /// Cuts the message to the journal's limits.
    #[must_use]
    pub(crate) fn bounded(&self) -> Self {
        Self { message: cut(&self.message, limit::NOTE_BYTES_MAX), ..self.clone() }
    }

    /// Whether the same attempt may succeed a little later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self.kind {
            FaultKind::RateLimit
            | FaultKind::Server
            | FaultKind::Overloaded
            | FaultKind::Timeout
            | FaultKind::Cut => true,
            FaultKind::Auth
            | FaultKind::OutOfCredit
            | FaultKind::Invalid
            | FaultKind::ContextTooLong
            | FaultKind::ContentFilter
            | FaultKind::Declined
            | FaultKind::Stopped => false,
        }
    }

    /// Whether another model may succeed: true for everything except our own stop.
    #[must_use]
    pub const fn is_elsewhere(&self) -> bool {
        !matches!(self.kind, FaultKind::Stopped)
    }
}
