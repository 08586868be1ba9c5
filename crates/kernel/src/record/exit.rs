//! How an agent ends. Only one of the four is a success, and a failure always says why.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::budget::Shortfall;
use crate::words::AgentId;

/// How an agent ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Exit {
    Completed,
    /// A ceiling stopped it; its result, if any, is partial.
    Exhausted {
        account: AgentId,
        short: Shortfall,
    },
    Failed {
        error: Failure,
    },
    /// Somebody stopped it, or an agent above it ended.
    Cancelled {
        reason: String,
    },
}

/// Why an agent failed. The code reaches the root unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// A word for programs.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

impl Exit {
    /// A failure with a code and words.
    #[must_use]
    pub fn failed(code: &str, message: impl Into<String>) -> Self {
        Self::Failed { error: Failure { code: code.to_owned(), message: message.into() } }
    }

    /// Whether the agent did what it was asked to.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Completed)
    }

    /// Which of the four it is.
    #[must_use]
    pub const fn kind(&self) -> ExitKind {
        match self {
            Self::Completed => ExitKind::Completed,
            Self::Exhausted { .. } => ExitKind::Exhausted,
            Self::Failed { .. } => ExitKind::Failed,
            Self::Cancelled { .. } => ExitKind::Cancelled,
        }
    }

    /// Which of the four it is, as one word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        self.kind().word()
    }
}

impl fmt::Display for Exit {
    /// How it ended, and why if that is not a success: `failed (timeout: it took longer than its timeout of 5 seconds)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        match self {
            Self::Completed => f.write_str(word),
            Self::Exhausted { account, short } => write!(f, "{word} ({})", short.describe(account)),
            Self::Failed { error: Failure { code, message } } => write!(f, "{word} ({code}: {message})"),
            Self::Cancelled { reason } if reason.is_empty() => f.write_str(word),
            Self::Cancelled { reason } => write!(f, "{word} ({reason})"),
        }
    }
}

/// The four ways to end, without what belongs to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitKind {
    Completed,
    Exhausted,
    Failed,
    Cancelled,
}

impl ExitKind {
    pub(crate) const ALL: [Self; 4] = [Self::Completed, Self::Exhausted, Self::Failed, Self::Cancelled];

    /// The word that journals, results and people use for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Exhausted => "exhausted",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for ExitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
