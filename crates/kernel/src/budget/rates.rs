//! One set of rates: converts token counts to nano-USD, rounded up once per call.

use serde::{Deserialize, Serialize};

use super::{AMOUNT_MAX, AmountError, Usage};

const MTOK: u128 = 1_000_000;

/// What tokens cost, in nano-USD per million.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Uncached input.
    pub input_per_mtok: u64,
    pub output_per_mtok: u64,
    /// Input read from a cache; the input rate if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_per_mtok: Option<u64>,
    /// Input written to a cache that keeps it for minutes; the input rate if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_per_mtok: Option<u64>,
    /// Input written to a cache that keeps it for an hour; the rate of the shorter one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h_per_mtok: Option<u64>,
    /// Output that is reasoning; the output rate if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_per_mtok: Option<u64>,
}

impl Rates {
    #[must_use]
    pub const fn flat(input_per_mtok: u64, output_per_mtok: u64) -> Self {
        Self {
            input_per_mtok,
            output_per_mtok,
            cached_input_per_mtok: None,
            cache_write_per_mtok: None,
            cache_write_1h_per_mtok: None,
            reasoning_per_mtok: None,
        }
    }

    /// The most a call can cost: all input at the highest input rate, the whole output cap at the higher output rate.
    pub(super) fn worst_case(&self, input_tokens: u64, output_cap: u64) -> u64 {
        rounded_up(&[(input_tokens, self.dearest_input()), (output_cap, self.dearest_output())])
    }

    pub(super) fn cost(&self, usage: &Usage) -> u64 {
        usage.cost_with(rounded_up(&[
            (usage.input, self.input_per_mtok),
            (usage.cached_input, self.cached_input()),
            (usage.cache_write, self.cache_write()),
            (usage.cache_write_1h, self.cache_write_1h()),
            (usage.output, self.output_per_mtok),
            (usage.reasoning, self.reasoning()),
        ]))
    }

    /// The largest output cap whose worst case is within `nanos`, or `None` if the input alone exceeds it.
    pub(super) fn output_within(&self, nanos: u64, input_tokens: u64) -> Option<u64> {
        let rest = nanos.checked_sub(self.worst_case(input_tokens, 0))?;
        Some(tokens_within(rest, self.dearest_output()))
    }

    /// The largest input whose worst case with `output_cap` is within `nanos`, or `None` if the output alone exceeds
    /// it.
    pub(super) fn input_within(&self, nanos: u64, output_cap: u64) -> Option<u64> {
        let rest = nanos.checked_sub(self.worst_case(0, output_cap))?;
        Some(tokens_within(rest, self.dearest_input()))
    }

    /// Refuses absurd rates.
    pub(super) fn check(&self) -> Result<(), AmountError> {
        let rates = [
            ("input price", self.input_per_mtok),
            ("output price", self.output_per_mtok),
            ("cached input price", self.cached_input()),
            ("cache write price", self.cache_write()),
            ("cache write price for an hour", self.cache_write_1h()),
            ("reasoning price", self.reasoning()),
        ];
        match rates.into_iter().find(|(_, amount)| *amount > AMOUNT_MAX) {
            Some((what, amount)) => Err(AmountError::TooLarge { what: what.to_owned(), amount }),
            None => Ok(()),
        }
    }

    fn dearest_input(&self) -> u64 {
        let caches = [self.cached_input(), self.cache_write(), self.cache_write_1h()];
        caches.into_iter().fold(self.input_per_mtok, u64::max)
    }

    fn dearest_output(&self) -> u64 {
        self.output_per_mtok.max(self.reasoning())
    }

    /// The highest rate of any token.
    pub(super) fn dearest(&self) -> u64 {
        self.dearest_input().max(self.dearest_output())
    }

    /// The lowest rate of any token.
    pub(super) fn cheapest(&self) -> u64 {
        let caches = [self.cached_input(), self.cache_write(), self.cache_write_1h()];
        let outputs = [self.output_per_mtok, self.reasoning()];
        caches.into_iter().chain(outputs).fold(self.input_per_mtok, u64::min)
    }

    /// Whether cached input is cheaper than new input.
    #[must_use]
    pub fn saves_by_cache(&self) -> bool {
        self.cached_input() < self.input_per_mtok
    }

    fn cached_input(&self) -> u64 {
        self.cached_input_per_mtok.unwrap_or(self.input_per_mtok)
    }

    fn cache_write(&self) -> u64 {
        self.cache_write_per_mtok.unwrap_or(self.input_per_mtok)
    }

    fn cache_write_1h(&self) -> u64 {
        self.cache_write_1h_per_mtok.unwrap_or(self.cache_write())
    }

    fn reasoning(&self) -> u64 {
        self.reasoning_per_mtok.unwrap_or(self.output_per_mtok)
    }
}

/// How many tokens `nanos` pays for; unbounded at a rate of zero.
fn tokens_within(nanos: u64, rate: u64) -> u64 {
    let tokens = (u128::from(nanos) * MTOK).checked_div(u128::from(rate));
    tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(u64::MAX)
}

/// Sums tokens times rate exactly and rounds up once. Saturates at [`AMOUNT_MAX`] + 1, which every check refuses.
fn rounded_up(parts: &[(u64, u64)]) -> u64 {
    let sum = parts
        .iter()
        .fold(0_u128, |sum, (tokens, rate)| sum.saturating_add(u128::from(*tokens) * u128::from(*rate)));
    u64::try_from(sum.div_ceil(MTOK)).unwrap_or(u64::MAX).min(AMOUNT_MAX + 1)
}
