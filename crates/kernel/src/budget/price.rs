//! Prices: from token counts to nano-USD, rounded up once per call.

use serde::{Deserialize, Serialize};

use super::{AMOUNT_MAX, AmountError, Amounts};

const MTOK: u128 = 1_000_000;

/// What a model costs, in nano-USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input that no cache knew.
    pub input_per_mtok: u64,
    pub output_per_mtok: u64,
    /// Input read from a cache; the input price if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_per_mtok: Option<u64>,
    /// Input written to a cache; the input price if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_per_mtok: Option<u64>,
}

impl Price {
    /// The most a call can cost: all input at the dearest input rate, all of the output cap.
    #[must_use]
    pub fn worst_case(&self, input_tokens: u64, output_cap: u64) -> u64 {
        let dearest = self.input_per_mtok.max(self.cached_input()).max(self.cache_write());
        rounded_up(&[(input_tokens, dearest), (output_cap, self.output_per_mtok)])
    }

    /// What a call did cost.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> u64 {
        rounded_up(&[
            (usage.input, self.input_per_mtok),
            (usage.cached_input, self.cached_input()),
            (usage.cache_write, self.cache_write()),
            (usage.output, self.output_per_mtok),
        ])
    }

    /// The largest output cap whose worst case is within `nanos`, or none if the input alone is dearer.
    #[must_use]
    pub fn output_within(&self, nanos: u64, input_tokens: u64) -> Option<u64> {
        let input = u128::from(self.worst_case(input_tokens, 0));
        let rest = u128::from(nanos).checked_sub(input)?;
        let cap = (rest * MTOK).checked_div(u128::from(self.output_per_mtok)).unwrap_or(u128::from(u64::MAX));
        Some(u64::try_from(cap).unwrap_or(u64::MAX))
    }

    /// The largest input whose worst case is within `nanos` beside so much output, or none if that alone is dearer.
    #[must_use]
    pub fn input_within(&self, nanos: u64, output_cap: u64) -> Option<u64> {
        let dearest = self.input_per_mtok.max(self.cached_input()).max(self.cache_write());
        let rest = u128::from(nanos).checked_sub(u128::from(self.worst_case(0, output_cap)))?;
        let input = (rest * MTOK).checked_div(u128::from(dearest)).unwrap_or(u128::from(u64::MAX));
        Some(u64::try_from(input).unwrap_or(u64::MAX))
    }

    /// Refuses absurd rates.
    ///
    /// # Errors
    /// Names the rate and the largest one allowed.
    pub fn checked(self) -> Result<Self, AmountError> {
        let rates = [
            ("input price", self.input_per_mtok),
            ("output price", self.output_per_mtok),
            ("cached input price", self.cached_input()),
            ("cache write price", self.cache_write()),
        ];
        match rates.into_iter().find(|(_, amount)| *amount > AMOUNT_MAX) {
            Some((what, amount)) => Err(AmountError::TooLarge { what: what.to_owned(), amount }),
            None => Ok(self),
        }
    }

    fn cached_input(&self) -> u64 {
        self.cached_input_per_mtok.unwrap_or(self.input_per_mtok)
    }

    fn cache_write(&self) -> u64 {
        self.cache_write_per_mtok.unwrap_or(self.input_per_mtok)
    }
}

/// What a model call used, in tokens. The four parts do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Input that no cache knew.
    pub input: u64,
    /// Input read from a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input: u64,
    /// Input written to a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    pub output: u64,
}

impl Usage {
    #[must_use]
    pub fn tokens(&self) -> u64 {
        [self.cached_input, self.cache_write, self.output].into_iter().fold(self.input, u64::saturating_add)
    }

    /// Refuses absurd counts.
    ///
    /// # Errors
    /// Names the number and the largest one allowed.
    pub fn checked(self) -> Result<Self, AmountError> {
        Amounts::ZERO.with(super::Resource::Tokens, self.tokens()).checked().map(|_| self)
    }
}

/// Sums tokens times rate exactly and rounds up once. A sum no ledger could hold stops at [`AMOUNT_MAX`] + 1,
/// which every check refuses.
fn rounded_up(parts: &[(u64, u64)]) -> u64 {
    let sum = parts
        .iter()
        .fold(0_u128, |sum, (tokens, rate)| sum.saturating_add(u128::from(*tokens) * u128::from(*rate)));
    u64::try_from(sum.div_ceil(MTOK)).unwrap_or(u64::MAX).min(AMOUNT_MAX + 1)
}

const fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}
