//! What a model call used: its tokens, and the costs that its provider reported.

use serde::{Deserialize, Serialize};

use super::{AMOUNT_MAX, AmountError, Amounts, Resource};

/// What a model call used. The kinds of tokens do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Uncached input.
    pub input: u64,
    /// Input read from a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input: u64,
    /// Input written to a cache that keeps it for minutes.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Input written to a cache that keeps it for an hour.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_1h: u64,
    /// Output without the tokens counted as reasoning.
    pub output: u64,
    /// Reasoning output, where the provider counts it separately.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: u64,
    /// The cost of the whole call as the provider reported it, in nano-USD. The booked cost is never lower.
    #[serde(skip_serializing_if = "is_zero")]
    pub reported_nanos: u64,
    /// What is billed in addition to the tokens, in nano-USD: searches that the provider runs. Added to the cost.
    #[serde(skip_serializing_if = "is_zero")]
    pub apart_nanos: u64,
}

impl Usage {
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input_tokens().saturating_add(self.output_tokens())
    }

    /// All input, cached or not. Price tiers use this.
    #[must_use]
    pub fn input_tokens(&self) -> u64 {
        let caches = [self.cached_input, self.cache_write, self.cache_write_1h];
        caches.into_iter().fold(self.input, u64::saturating_add)
    }

    /// All output, reasoning included. The output cap limits this.
    #[must_use]
    pub const fn output_tokens(&self) -> u64 {
        self.output.saturating_add(self.reasoning)
    }

    /// The cost of the whole call if its tokens cost `tokens_nanos`. Saturates at [`AMOUNT_MAX`] + 1, which every check
    /// refuses.
    #[must_use]
    pub fn cost_with(&self, tokens_nanos: u64) -> u64 {
        tokens_nanos.max(self.reported_nanos).saturating_add(self.apart_nanos).min(AMOUNT_MAX + 1)
    }

    /// The token counts only.
    #[must_use]
    pub const fn without_money(self) -> Self {
        Self { reported_nanos: 0, apart_nanos: 0, ..self }
    }

    /// Refuses absurd counts.
    ///
    /// # Errors
    /// Names the number and the largest one allowed.
    pub fn checked(self) -> Result<Self, AmountError> {
        Amounts::ZERO.with(Resource::Tokens, self.tokens()).checked()?;
        let costs = [("reported cost", self.reported_nanos), ("cost beside the tokens", self.apart_nanos)];
        match costs.into_iter().find(|(_, amount)| *amount > AMOUNT_MAX) {
            Some((what, amount)) => Err(AmountError::TooLarge { what: what.to_owned(), amount }),
            None => Ok(self),
        }
    }
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}
