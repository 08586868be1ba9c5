//! What a child knows at its start.

use serde::{Deserialize, Serialize};

use crate::definition::Refusal;
use crate::primitives::{Body, Category, limit};

/// What a child knows at its start, beside its goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    #[default]
    Goal,
    /// The parent's own briefing: its first message and its current context messages.
    Briefing,
    /// The context messages of its parent's thread, existing and future ones.
    Thread,
    /// The last turns of its parent.
    Fork(u32),
}

impl Share {
    pub(crate) fn check(self) -> Result<(), Refusal> {
        match self {
            Self::Goal | Self::Briefing | Self::Thread => Ok(()),
            Self::Fork(turns) if turns <= limit::FORK_TURNS_MAX => Ok(()),
            Self::Fork(turns) => {
                let (what, count) = ("turns to fork".to_owned(), turns as usize);
                Err(Refusal::TooMany { what, count, count_max: limit::FORK_TURNS_MAX as usize })
            }
        }
    }

    pub(crate) fn is_goal(&self) -> bool {
        *self == Self::Goal
    }
}

/// A message that a child is given at its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenMessage {
    pub category: Category,
    pub body: Body,
}
