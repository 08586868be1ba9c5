//! What happens first to a call that does not fit its budget, where one word says it for all models.

use std::str::FromStr;

use serde::Deserialize;
use spinney::tree_file::nearest;
use spinney_kernel::definition::OnLow;

/// What happens first to a call that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LowPolicy {
    /// Its output cap stays as it is.
    Halt,
    /// Its output cap is lowered to fit and to leave room for other calls.
    Shrink,
}

/// A word that does not name a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown value `{word}`: {help}")]
pub struct NotALowPolicy {
    word: String,
    help: String,
}

impl LowPolicy {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Halt, Self::Shrink];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Halt => "halt",
            Self::Shrink => "shrink",
        }
    }

    /// As a definition has it.
    #[must_use]
    pub const fn on_low(self) -> OnLow {
        match self {
            Self::Halt => OnLow::Halt,
            Self::Shrink => OnLow::Shrink,
        }
    }
}

impl FromStr for LowPolicy {
    type Err = NotALowPolicy;

    fn from_str(word: &str) -> Result<Self, NotALowPolicy> {
        let found = Self::ALL.into_iter().find(|policy| policy.as_str() == word);
        found.ok_or_else(|| NotALowPolicy {
            word: word.to_owned(),
            help: nearest::help(word, Self::ALL.map(Self::as_str), "values"),
        })
    }
}
