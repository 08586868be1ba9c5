//! The token usage of a model call.

use serde::{Deserialize, Serialize};

use super::{AmountError, Amounts, Resource};

/// The token usage of a model call. The parts do not overlap.
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

    /// Refuses absurd counts.
    ///
    /// # Errors
    /// Names the number and the largest one allowed.
    pub fn checked(self) -> Result<Self, AmountError> {
        Amounts::ZERO.with(Resource::Tokens, self.tokens()).checked().map(|_| self)
    }
}

const fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}
