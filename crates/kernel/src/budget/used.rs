//! What an attempt actually used, as far as its driver knows.

use super::{AMOUNT_MAX, AmountError, Usage};
use serde::{Deserialize, Serialize};

/// What an attempt actually used, as far as its driver knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", try_from = "Unchecked")]
pub enum Used {
    /// A model's tokens; the price gives their cost.
    Tokens(Usage),
    /// A tool's own cost.
    CostNanos(u64),
    /// Unknown: settled at the full hold, because it may be billed in full.
    Unknown,
}

impl Used {
    pub const NOTHING: Self = Self::CostNanos(0);

    /// Refuses absurd numbers before they reach a tree.
    ///
    /// # Errors
    /// Names the number and the largest one allowed.
    pub fn checked(self) -> Result<Self, AmountError> {
        match self {
            Self::Tokens(usage) => usage.checked().map(Self::Tokens),
            Self::CostNanos(amount) if amount > AMOUNT_MAX => {
                Err(AmountError::TooLarge { what: "cost".to_owned(), amount })
            }
            Self::CostNanos(_) | Self::Unknown => Ok(self),
        }
    }
}

/// The serialized form, before validation.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unchecked {
    Tokens(Usage),
    CostNanos(u64),
    Unknown,
}

impl TryFrom<Unchecked> for Used {
    type Error = AmountError;
    fn try_from(unchecked: Unchecked) -> Result<Self, AmountError> {
        match unchecked {
            Unchecked::Tokens(usage) => Self::Tokens(usage),
            Unchecked::CostNanos(nanos) => Self::CostNanos(nanos),
            Unchecked::Unknown => Self::Unknown,
        }
        .checked()
    }
}
