//! Categories: what a message is for, and so how soon it is left out.

use serde::{Deserialize, Serialize};

/// What a message is for, the most important first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// What the agent is and has to do. Never left out.
    System,
    /// What it was told to know: briefings, inputs, notes that stay true.
    Context,
    /// What was said by it and to it.
    #[default]
    Dialog,
    /// What tools and children returned.
    Output,
    Error,
    /// What the machine tells the agent and nobody else.
    Internal,
    Unknown,
}

impl Category {
    /// How many there are.
    pub const COUNT: usize = 7;

    /// Every category, the most important first.
    pub const ALL: [Self; Self::COUNT] =
        [Self::System, Self::Context, Self::Dialog, Self::Output, Self::Error, Self::Internal, Self::Unknown];

    /// Its place among [`Category::ALL`].
    #[must_use]
    pub const fn place(self) -> usize {
        self as usize
    }

    /// The word for it, everywhere.
    #[must_use]
    pub const fn word(self) -> &'static str {
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

    /// Whether people see it.
    #[must_use]
    pub const fn is_shown(self) -> bool {
        !matches!(self, Self::Internal)
    }
}
