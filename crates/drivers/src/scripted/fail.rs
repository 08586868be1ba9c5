//! Scripted failures: which attempts of a rule or tool fail, and how.

use serde::Deserialize;
use spinney_kernel::primitives::{Fault, FaultKind};

/// How often and how something fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fail {
    pub(super) kind: FailKind,
    /// How many attempts fail, from the first on; all of them if absent.
    #[serde(default)]
    times: Option<u32>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
}

/// The failures that a script can play: those that a provider can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FailKind {
    RateLimit,
    Server,
    Overloaded,
    Timeout,
    Auth,
    OutOfCredit,
    Invalid,
    ContextTooLong,
    ContentFilter,
    Declined,
    Cut,
}

impl Fail {
    /// Whether this attempt fails, the first being 1.
    pub(super) fn hits(&self, attempt: u32) -> bool {
        self.times.is_none_or(|times| attempt <= times)
    }

    /// Whether no attempt ever gets past it.
    pub(super) const fn is_final(&self) -> bool {
        self.times.is_none()
    }

    /// What an attempt meets that it hits.
    pub(super) fn fault(&self, attempt: u32, source: &str) -> Fault {
        Fault {
            kind: self.kind.fault_kind(),
            message: format!("{source}: attempt {attempt} fails as scripted"),
            retry_after_ms: self.retry_after_ms,
        }
    }
}

impl FailKind {
    const fn fault_kind(self) -> FaultKind {
        match self {
            Self::RateLimit => FaultKind::RateLimit,
            Self::Server => FaultKind::Server,
            Self::Overloaded => FaultKind::Overloaded,
            Self::Timeout => FaultKind::Timeout,
            Self::Auth => FaultKind::Auth,
            Self::OutOfCredit => FaultKind::OutOfCredit,
            Self::Invalid => FaultKind::Invalid,
            Self::ContextTooLong => FaultKind::ContextTooLong,
            Self::ContentFilter => FaultKind::ContentFilter,
            Self::Declined => FaultKind::Declined,
            Self::Cut => FaultKind::Cut,
        }
    }
}
