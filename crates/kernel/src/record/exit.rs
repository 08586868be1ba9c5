//! How an agent ends. Only one of the four is a success, and a failure always says why.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::FailureCode;
use crate::budget::Shortfall;
use crate::primitives::AgentId;

/// How an agent ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Exit {
    Completed,
    /// A ceiling stopped it; a result, if any, is partial.
    Exhausted {
        account: AgentId,
        short: Shortfall,
    },
    Failed {
        error: Failure,
    },
    /// A person or an ancestor stopped it.
    Cancelled {
        reason: String,
    },
}

/// Why an agent failed. The code reaches the root unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// For programs.
    pub code: FailureCode,
    /// For people.
    pub message: String,
}

impl Exit {
    #[must_use]
    pub fn failed(code: FailureCode, message: impl Into<String>) -> Self {
        Self::Failed { error: Failure { code, message: message.into() } }
    }

    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Completed)
    }

    #[must_use]
    pub const fn kind(&self) -> ExitKind {
        match self {
            Self::Completed => ExitKind::Completed,
            Self::Exhausted { .. } => ExitKind::Exhausted,
            Self::Failed { .. } => ExitKind::Failed,
            Self::Cancelled { .. } => ExitKind::Cancelled,
        }
    }

    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        self.kind().as_str()
    }
}

impl fmt::Display for Exit {
    /// The exit, and the reason unless it is a success: `failed (timeout: it took longer than its timeout of 5
    /// seconds)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.as_str();
        match self {
            Self::Completed => f.write_str(word),
            Self::Exhausted { account, short } => write!(f, "{word} ({})", short.describe(account)),
            Self::Failed { error: Failure { code, message } } => write!(f, "{word} ({code}: {message})"),
            Self::Cancelled { reason } if reason.is_empty() => f.write_str(word),
            Self::Cancelled { reason } => write!(f, "{word} ({reason})"),
        }
    }
}

/// The four exits without their data.
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

    /// The word for it in journals, results and texts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
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
        f.write_str(self.as_str())
    }
}
