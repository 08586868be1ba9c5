//! Prices: the most a call can cost, and what it did cost. A price has rates, higher ones for long inputs, and
//! changes by date or time of day. Providers do not say whether they bill by the start or the end of a call, so a
//! hold takes the highest rates that can be active until the call's latest end; the booked cost uses its start
//! (decision 0027).

use serde::{Deserialize, Serialize};

use super::{AmountError, Rates, Usage};
use crate::primitives::{Time, limit};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A call is at most one day long, so each time of day occurs once and a hold checks it once.
const _: () = assert!(limit::MODEL_CALL_MS_MAX <= DAY_MS);

/// What a model costs. Rates are in nano-USD per million tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
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
    /// Rates for calls with long inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<PriceTier>,
    /// Prices at other times. The last active one applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<PriceChange>,
}

/// Rates of a whole call, input and output, whose input is longer than a threshold. The highest threshold passed
/// applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTier {
    pub input_above: u64,
    pub rates: Rates,
}

/// A price that is active only at some times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceChange {
    pub active: PriceActive,
    pub rates: Rates,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<PriceTier>,
}

/// When a price is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PriceActive {
    From(Time),
    /// Between two seconds of each day, in UTC. Spans midnight if the end is before the start.
    Daily {
        start_s: u32,
        end_s: u32,
    },
}

impl From<Rates> for Price {
    fn from(rates: Rates) -> Self {
        Self {
            input_per_mtok: rates.input_per_mtok,
            output_per_mtok: rates.output_per_mtok,
            cached_input_per_mtok: rates.cached_input_per_mtok,
            cache_write_per_mtok: rates.cache_write_per_mtok,
            cache_write_1h_per_mtok: rates.cache_write_1h_per_mtok,
            reasoning_per_mtok: rates.reasoning_per_mtok,
            tiers: Vec::new(),
            changes: Vec::new(),
        }
    }
}

impl Price {
    /// One rate for all input and one for all output, at all times and lengths.
    #[must_use]
    pub fn flat(input_per_mtok: u64, output_per_mtok: u64) -> Self {
        Rates::flat(input_per_mtok, output_per_mtok).into()
    }

    /// Whether a call's cost depends on its start time.
    #[must_use]
    pub const fn is_dated(&self) -> bool {
        !self.changes.is_empty()
    }

    /// The most a call that starts now can cost: for any use of caches, any input up to the bound, and any rates that
    /// are active until its latest end.
    #[must_use]
    pub fn worst_case(&self, input_tokens: u64, output_cap: u64, now: Time) -> u64 {
        let reached = self.cards(now).flat_map(|card| card.reached(input_tokens));
        reached.map(|rates| rates.worst_case(input_tokens, output_cap)).max().unwrap_or_default()
    }

    /// The cost of a call that started at `start`: the larger of its token cost and the cost that the provider reported,
    /// plus what is billed in addition to the tokens.
    #[must_use]
    pub fn cost(&self, usage: &Usage, start: Time) -> u64 {
        self.rates_at(start, usage.input_tokens()).cost(usage)
    }

    /// The largest output cap whose worst case is within `nanos`, or `None` if the input alone exceeds it.
    #[must_use]
    pub fn output_within(&self, nanos: u64, input_tokens: u64, now: Time) -> Option<u64> {
        let reached = self.cards(now).flat_map(|card| card.reached(input_tokens));
        reached.map(|rates| rates.output_within(nanos, input_tokens)).min().flatten()
    }

    /// The largest input whose worst case with `output_cap` is within `nanos`, or `None` if the output alone exceeds
    /// it.
    #[must_use]
    pub fn input_within(&self, nanos: u64, output_cap: u64, now: Time) -> Option<u64> {
        self.cards(now).map(|card| card.input_within(nanos, output_cap)).min().flatten()
    }

    /// The rates of a call that starts at `at` with this much input.
    #[must_use]
    pub fn rates_at(&self, at: Time, input_tokens: u64) -> Rates {
        self.card_at(at).rates_for(input_tokens)
    }

    /// The start date of the rates that apply at `at`, if they have one.
    #[must_use]
    pub fn since(&self, at: Time) -> Option<Time> {
        let dates = self.changes.iter().filter_map(|change| match change.active {
            PriceActive::From(from) => Some(from),
            PriceActive::Daily { .. } => None,
        });
        dates.filter(|from| *from <= at).max()
    }

    /// The most that one token of any kind can cost at any time and length, in whole nano-USD. Rounded up per token,
    /// so it also covers what calls round up.
    #[must_use]
    pub fn dearest_token_nanos(&self) -> u64 {
        self.all_rates().map(|rates| rates.dearest()).max().unwrap_or_default().div_ceil(1_000_000)
    }

    /// The lowest rate of any kind of token at any time and length, in nano-USD per million.
    #[must_use]
    pub fn cheapest_per_mtok(&self) -> u64 {
        self.all_rates().map(|rates| rates.cheapest()).min().unwrap_or_default()
    }

    /// Refuses absurd rates.
    ///
    /// # Errors
    /// Names the rate and the largest one allowed.
    pub fn check(&self) -> Result<(), AmountError> {
        self.all_rates().try_for_each(|rates| rates.check())
    }

    fn all_rates(&self) -> impl Iterator<Item = Rates> {
        let changed = self.changes.iter().flat_map(PriceChange::all);
        std::iter::once(self.rates()).chain(self.tiers.iter().map(|tier| tier.rates)).chain(changed)
    }

    pub(crate) fn rates_count(&self) -> usize {
        let changed: usize = self.changes.iter().map(|change| 1 + change.tiers.len()).sum();
        1 + self.tiers.len() + changed
    }

    pub(super) const fn rates(&self) -> Rates {
        Rates {
            input_per_mtok: self.input_per_mtok,
            output_per_mtok: self.output_per_mtok,
            cached_input_per_mtok: self.cached_input_per_mtok,
            cache_write_per_mtok: self.cache_write_per_mtok,
            cache_write_1h_per_mtok: self.cache_write_1h_per_mtok,
            reasoning_per_mtok: self.reasoning_per_mtok,
        }
    }

    /// Every card that is active at some moment of a call that starts now. Cards change at no other moments.
    fn cards(&self, now: Time) -> impl Iterator<Item = Card<'_>> {
        let until = now.after_ms(limit::MODEL_CALL_MS_MAX);
        let turns = self.changes.iter().flat_map(move |change| change.active.turns_after(now));
        let moments = std::iter::once(now).chain(turns.filter(move |at| *at <= until));
        moments.map(|at| self.card_at(at))
    }

    fn card_at(&self, at: Time) -> Card<'_> {
        match self.changes.iter().rev().find(|change| change.active.holds_at(at)) {
            Some(change) => Card { rates: change.rates, tiers: &change.tiers },
            None => Card { rates: self.rates(), tiers: &self.tiers },
        }
    }
}

impl PriceChange {
    fn all(&self) -> impl Iterator<Item = Rates> {
        std::iter::once(self.rates).chain(self.tiers.iter().map(|tier| tier.rates))
    }
}

impl PriceActive {
    fn holds_at(self, at: Time) -> bool {
        match self {
            Self::From(from) => at >= from,
            Self::Daily { start_s, end_s } => {
                let (start, end) = (u64::from(start_s) * 1_000, u64::from(end_s) * 1_000);
                let ms = at.0 % DAY_MS;
                if end < start { ms >= start || ms < end } else { ms >= start && ms < end }
            }
        }
    }

    /// The next moments after `now` at which it starts or ends.
    fn turns_after(self, now: Time) -> impl Iterator<Item = Time> {
        let next = |second: u32| {
            let at = Time(now.0 - now.0 % DAY_MS).after_ms(u64::from(second) * 1_000);
            if at > now { at } else { at.after_ms(DAY_MS) }
        };
        let turns = match self {
            Self::From(from) => [Some(from), None],
            Self::Daily { start_s, end_s } => [Some(next(start_s)), Some(next(end_s))],
        };
        turns.into_iter().flatten().filter(move |at| *at > now)
    }
}

/// The price that is active at one moment.
#[derive(Clone, Copy)]
struct Card<'a> {
    rates: Rates,
    tiers: &'a [PriceTier],
}

impl<'a> Card<'a> {
    fn rates_for(&self, input_tokens: u64) -> Rates {
        let passed = self.tiers.iter().filter(|tier| tier.input_above < input_tokens);
        passed.max_by_key(|tier| tier.input_above).map_or(self.rates, |tier| tier.rates)
    }

    /// The rates of all calls whose input is within a bound. A shorter input may have higher rates.
    fn reached(self, input_tokens_max: u64) -> impl Iterator<Item = Rates> + 'a {
        let passed = self.tiers.iter().filter(move |tier| tier.input_above < input_tokens_max);
        std::iter::once(self.rates).chain(passed.map(|tier| tier.rates))
    }

    fn input_within(&self, nanos: u64, output_cap: u64) -> Option<u64> {
        let most = self.rates.input_within(nanos, output_cap)?;
        // Where a tier is too expensive, the input ends at its threshold.
        let tiers = self
            .tiers
            .iter()
            .map(|tier| tier.rates.input_within(nanos, output_cap).unwrap_or_default().max(tier.input_above));
        Some(tiers.fold(most, u64::min))
    }
}
