//! The models of the price table, as a list that people and programs read.

use serde::Serialize;
use spinney_drivers::prices::{ListedModel, PriceTable, TableModel};
use spinney_kernel::budget::{Price, Rates};
use spinney_kernel::primitives::Time;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A model of the list.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PriceListEntry<'t> {
    /// Its provider and its name.
    pub model: String,
    /// Whether it has a price, is not deprecated, and its provider lists no newer version of it.
    pub current: bool,
    /// Whether the source calls it deprecated.
    pub deprecated: bool,
    /// How many tokens of input and output together it takes, if the source says.
    pub context: Option<u64>,
    /// Its longest answer, which no source says so far.
    pub max_output: Option<u64>,
    /// The day since which its price is valid, in UTC.
    pub date: String,
    /// Where the table comes from.
    pub source: &'t str,
    /// What it costs.
    #[serde(flatten)]
    pub price: ListedPrice<'t>,
}

/// What a model of the list costs.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ListedPrice<'t> {
    /// It has a price.
    Known {
        /// What a short call costs now.
        rates: Rates,
        /// All of it.
        price: &'t Price,
        /// Whether a call now can cost more than these rates.
        #[serde(skip)]
        is_dearer_somewhere: bool,
    },
    /// It has none.
    Unknown {
        /// The reason.
        unpriced: &'t str,
    },
}

/// The models whose names contain every one of these words, in the order of the table.
pub fn find<'t>(table: &'t PriceTable, words: &[String], now: Time) -> Vec<PriceListEntry<'t>> {
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let fits = |name: &str| words.iter().all(|word| name.to_lowercase().contains(word));
    let named = table.models().map(|listed| (format!("{}/{}", listed.provider, listed.model.name), listed));
    let found = named.filter(|(name, _)| fits(name));
    found.map(|(name, listed)| entry(table, name, listed, now)).collect()
}

fn entry<'t>(table: &'t PriceTable, name: String, listed: ListedModel<'t>, now: Time) -> PriceListEntry<'t> {
    let model = listed.model;
    PriceListEntry {
        model: name,
        current: listed.is_current,
        deprecated: model.is_deprecated,
        context: model.context,
        max_output: None,
        date: since(table, model, now),
        source: &table.source,
        price: match model.price() {
            Ok(price) => ListedPrice::Known {
                rates: price.rates_at(now, 0),
                price,
                is_dearer_somewhere: is_dearer_somewhere(price, now),
            },
            Err(unpriced) => ListedPrice::Unknown { unpriced },
        },
    }
}

/// Whether a call now can cost more than the rates shown.
fn is_dearer_somewhere(price: &Price, now: Time) -> bool {
    let rates = price.rates_at(now, 0);
    Price::from(rates).worst_case(u64::from(u32::MAX), 1, now) < price.worst_case(u64::from(u32::MAX), 1, now)
}

/// The day since which a price is valid: its own if it has one, otherwise the table's.
fn since(table: &PriceTable, model: &TableModel, now: Time) -> String {
    let own = model.price().ok().and_then(|price| price.since(now));
    own.map_or_else(|| table.date.clone(), day)
}

/// The day in UTC: `2026-10-30`.
fn day(at: Time) -> String {
    // Counted from March, so a leap day is the last day of the year.
    let days = at.0 / DAY_MS + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + u64::from(month <= 2))
}

#[cfg(test)]
mod tests {
    use spinney_kernel::primitives::Time;

    use super::{DAY_MS, day};

    #[test]
    fn a_moment_is_shown_as_its_day() {
        assert_eq!(day(Time(0)), "1970-01-01");
        assert_eq!(day(Time(1_709_164_800_000)), "2024-02-29");
        assert_eq!(day(Time(1_709_164_800_000 + DAY_MS)), "2024-03-01");
        assert_eq!(day(Time(1_767_225_600_000 - 1)), "2025-12-31");
        assert_eq!(day(Time(1_767_225_600_000)), "2026-01-01");
    }
}
