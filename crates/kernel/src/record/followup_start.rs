//! How a program with a follow-up begins: in the session of the agent that it continues, or anew.

use serde::{Deserialize, Serialize};

use crate::primitives::SessionId;

/// Where a program with a follow-up begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowupStart {
    /// In the session that the program of the earlier agent named: its files were copied.
    Session(SessionId),
    /// In none: it is told what the earlier agent was told and answered.
    Anew(NoSession),
}

/// Why a program does not continue in the session of the earlier agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoSession {
    /// The earlier program named none.
    Unnamed,
    /// It is not known how this program continues one.
    Unsupported,
    /// Its files are not in the folder of the earlier agent, which another machine may have.
    Gone,
    /// Its files are more than is copied.
    TooLarge,
    /// Its files could not be copied.
    NotCopied,
}

impl NoSession {
    /// After "because", for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unnamed => "its program named no session",
            Self::Unsupported => "its program has no sessions that are continued",
            Self::Gone => "the files of its session are gone",
            Self::TooLarge => "the files of its session are too large",
            Self::NotCopied => "the files of its session cannot be copied",
        }
    }
}
