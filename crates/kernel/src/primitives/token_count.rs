//! Two counts of one text: an upper bound, which holds use, and an estimate, which windows use.

use std::fmt;
use std::iter::Sum;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// The tokens of a text. An exact counter gives one number for both counts, and a journal then has just that number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCount {
    bound: u64,
    estimate: u64,
}

/// Bytes per token of the kernel's own texts, which are plain English.
const OWN_BYTES_PER_TOKEN: u64 = 4;

impl TokenCount {
    pub const ZERO: Self = Self::exact(0);

    /// An estimate above the bound is lowered to it.
    #[must_use]
    pub const fn new(bound: u64, estimate: u64) -> Self {
        Self { bound, estimate: if estimate < bound { estimate } else { bound } }
    }

    #[must_use]
    pub const fn exact(tokens: u64) -> Self {
        Self { bound: tokens, estimate: tokens }
    }

    /// A text that was not counted: no token is shorter than a byte, and such texts are the kernel's own.
    #[must_use]
    pub const fn of_bytes(bytes: usize) -> Self {
        Self::new(bytes as u64, (bytes as u64).div_ceil(OWN_BYTES_PER_TOKEN))
    }

    /// The most tokens that it can have.
    #[must_use]
    pub const fn bound(self) -> u64 {
        self.bound
    }

    /// The tokens that it probably has. Never above the bound.
    #[must_use]
    pub const fn estimate(self) -> u64 {
        self.estimate
    }

    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            bound: self.bound.saturating_add(other.bound),
            estimate: self.estimate.saturating_add(other.estimate),
        }
    }

    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        let estimate = self.estimate.saturating_sub(other.estimate);
        Self::new(self.bound.saturating_sub(other.bound), estimate)
    }

    #[must_use]
    pub const fn times(self, times: u64) -> Self {
        Self { bound: self.bound.saturating_mul(times), estimate: self.estimate.saturating_mul(times) }
    }

    /// No more than `most` tokens.
    #[must_use]
    pub fn at_most(self, most: u64) -> Self {
        Self::new(self.bound.min(most), self.estimate)
    }

    /// The larger number of each kind.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { bound: self.bound.max(other.bound), estimate: self.estimate.max(other.estimate) }
    }
}

impl From<u64> for TokenCount {
    fn from(tokens: u64) -> Self {
        Self::exact(tokens)
    }
}

impl Sum for TokenCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Self::plus)
    }
}

impl Serialize for TokenCount {
    /// One number, or the bound and the estimate.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.bound == self.estimate {
            serializer.serialize_u64(self.bound)
        } else {
            (self.bound, self.estimate).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for TokenCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counts;

        impl<'de> Visitor<'de> for Counts {
            type Value = TokenCount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of tokens, or a bound and an estimate")
            }

            fn visit_u64<E>(self, tokens: u64) -> Result<TokenCount, E> {
                Ok(TokenCount::exact(tokens))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut counts: A) -> Result<TokenCount, A::Error> {
                let missing = |place| serde::de::Error::invalid_length(place, &self);
                let bound = counts.next_element()?.ok_or_else(|| missing(0))?;
                let estimate = counts.next_element()?.ok_or_else(|| missing(1))?;
                Ok(TokenCount::new(bound, estimate))
            }
        }

        deserializer.deserialize_any(Counts)
    }
}
