//! What a model call used, in tokens.

use serde::{Deserialize, Serialize};

use super::{AmountError, Amounts, Resource};

/// What a model call used, in tokens. The parts do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Input that no cache knew.
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
    /// Output that is the answer: without what is counted as reasoning.
    pub output: u64,
    /// Output that is reasoning, where it is counted by itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

impl Usage {
    /// All of it.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input_tokens().saturating_add(self.output_tokens())
    }

    /// Everything that went in, whatever a cache knew of it. Tiers go by this.
    #[must_use]
    pub fn input_tokens(&self) -> u64 {
        let caches = [self.cached_input, self.cache_write, self.cache_write_1h];
        caches.into_iter().fold(self.input, u64::saturating_add)
    }

    /// Everything that came out, reasoning included. An output cap binds this.
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
