//! Faults: the outside failed. A driver makes one attempt and says what kind of failure it met; whether to try
//! again is decided in here.

use serde::{Deserialize, Serialize};

use crate::words::{cut, limit};

/// One failed attempt, as its driver saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What kind of failure.
    pub kind: FaultKind,
    /// What the outside said, bounded and free of secrets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How long the outside asked us to stay away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// The kinds of failure that matter for what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    RateLimit,
    /// The other side failed.
    Server,
    /// The other side has more to do than it can.
    Overloaded,
    /// No answer in time.
    Timeout,
    /// The answer broke off.
    Cut,
    /// Wrong or missing key.
    Auth,
    /// The account behind the key has no money left.
    OutOfCredit,
    /// The other side says the request itself is wrong.
    Invalid,
    /// The request has more tokens than the model takes.
    ContextTooLong,
    /// The other side held the answer back.
    ContentFilter,
    /// The model declined to answer.
    Declined,
    /// We stopped it ourselves.
    Stopped,
}

impl FaultKind {
    /// The kind as one word.
    #[must_use]
    pub const fn word(self) -> &'static str {
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
    /// A fault without further words.
    #[must_use]
    pub const fn of(kind: FaultKind) -> Self {
        Self { kind, message: String::new(), retry_after_ms: None }
    }

    /// This, with its message cut to what a journal takes.
    #[must_use]
    pub(crate) fn bounded(&self) -> Self {
        Self { message: cut(&self.message, limit::NOTE_BYTES_MAX), ..self.clone() }
    }

    /// Whether the same attempt may go better a little later.
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

    /// Whether another model may go better: everything but our own stop.
    #[must_use]
    pub const fn is_elsewhere(&self) -> bool {
        !matches!(self.kind, FaultKind::Stopped)
    }
}
