//! Categories: what a message is for, which decides how soon it is left out of a full window.

use serde::{Deserialize, Serialize};

/// What a message is for, most important first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// The agent's identity and task. Never left out.
    System,
    /// Background it was given: briefings, inputs, lasting notes.
    Context,
    /// Conversation.
    #[default]
    Dialog,
    /// Results of tools and children.
    Output,
    Error,
    /// Notices from the system to this agent only.
    Internal,
    Unknown,
}

impl Category {
    pub const COUNT: usize = 7;

    /// Every category, most important first.
    pub const ALL: [Self; Self::COUNT] =
        [Self::System, Self::Context, Self::Dialog, Self::Output, Self::Error, Self::Internal, Self::Unknown];

    /// Its index in [`Category::ALL`].
    #[must_use]
    pub const fn place(self) -> usize {
        self as usize
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Context => "context",
            Self::Dialog => "dialog",
            Self::Output => "output",
            Self::Error => "error",
            Self::Internal => "internal",
            Self::Unknown => "unknown",
        }
    }

    #[must_use]
    pub const fn is_shown(self) -> bool {
        !matches!(self, Self::Internal)
    }
}
