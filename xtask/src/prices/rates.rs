//! The prices of one moment as sets of rates: one for short inputs, and one for each length from which something is
//! dearer.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::decimal::nanos_rounded_up;
use super::source::Prices;

/// The source's names of what a text call is billed by, and ours, in the kernel's order. The first two must be there.
const RATES: [(&str, &str); 6] = [
    ("input_mtok", "input_per_mtok"),
    ("output_mtok", "output_per_mtok"),
    ("cache_read_mtok", "cached_input_per_mtok"),
    ("cache_write_mtok", "cache_write_per_mtok"),
    ("cache_write_1h_mtok", "cache_write_1h_per_mtok"),
    ("output_reasoning_mtok", "reasoning_per_mtok"),
];

/// Tools that the provider runs when a request asks for them. Drivers refuse such requests.
const SERVER_TOOLS: [&str; 4] =
    ["code_executions_kcount", "social_searches_kcount", "storage_searches_kcount", "web_searches_kcount"];

/// What drivers do not send.
const NEVER_SENT: [&str; 4] =
    ["cache_audio_read_mtok", "cache_video_read_mtok", "input_audio_mtok", "input_video_mtok"];

/// Images are counted and held as input, so they must not be dearer.
const IMAGES: [&str; 2] = ["cache_image_read_mtok", "input_image_mtok"];

/// The prices of one moment. The first set of rates has no threshold.
pub(super) struct Card(Vec<(Option<u64>, Map<String, Value>)>);

/// One price of the source: the same for all, or by the length of the input.
struct Tiered {
    base: u64,
    /// Above so many input tokens, the whole of it costs so much.
    tiers: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TieredText {
    base: Box<RawValue>,
    tiers: Vec<TierText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TierText {
    start: u64,
    price: Box<RawValue>,
}

impl Card {
    /// The rates, or why the maximum cost of a call is unknown.
    pub(super) fn from_prices(prices: &Prices) -> anyhow::Result<Result<Self, String>> {
        let read = |key: &str| prices.get(key).map(|text| Tiered::read(text)).transpose();
        if prices.is_empty() {
            return Ok(Err("the source has no price".to_owned()));
        }
        let (Some(input), Some(_)) = (read("input_mtok")?, read("output_mtok")?) else {
            return Ok(Err("the source has no price for both input and output tokens".to_owned()));
        };
        for (key, text) in prices {
            let key = key.as_str();
            let is_known = RATES.iter().any(|(name, _)| *name == key);
            if is_known || SERVER_TOOLS.contains(&key) || NEVER_SENT.contains(&key) {
                continue;
            }
            if !IMAGES.contains(&key) {
                return Ok(Err(format!("it is also billed by {key}")));
            }
            if Tiered::read(text)?.dearest() > input.cheapest() {
                return Ok(Err(format!("images are dearer than text ({key})")));
            }
        }
        let mut rates = Vec::new();
        for (key, name) in RATES {
            rates.extend(read(key)?.map(|price| (name, price)));
        }
        let starts: BTreeSet<u64> =
            rates.iter().flat_map(|(_, price)| price.tiers.iter().map(|(start, _)| *start)).collect();
        let set = |start: Option<u64>| {
            let rate = |(name, price): &(&str, Tiered)| ((*name).to_owned(), json!(price.above(start)));
            (start, rates.iter().map(rate).collect())
        };
        Ok(Ok(Self(std::iter::once(None).chain(starts.into_iter().map(Some)).map(set).collect())))
    }

    /// As a price of the kernel: rates and tiers beside each other.
    pub(super) fn object(self) -> Map<String, Value> {
        let mut sets = self.0.into_iter();
        let mut all = sets.next().map(|(_, rates)| rates).unwrap_or_default();
        let tiers: Vec<Value> =
            sets.map(|(start, rates)| json!({ "input_above": start, "rates": rates })).collect();
        if !tiers.is_empty() {
            all.insert("tiers".to_owned(), Value::Array(tiers));
        }
        all
    }

    /// As a change of a price.
    pub(super) fn change(self, active: Value) -> Value {
        let mut rates = self.object();
        let tiers = rates.shift_remove("tiers");
        let mut change =
            Map::from_iter([("active".to_owned(), active), ("rates".to_owned(), Value::Object(rates))]);
        change.extend(tiers.map(|tiers| ("tiers".to_owned(), tiers)));
        Value::Object(change)
    }
}

impl Tiered {
    fn read(text: &RawValue) -> anyhow::Result<Self> {
        let text = text.get();
        if !text.starts_with('{') {
            return Ok(Self { base: nanos_rounded_up(text)?, tiers: Vec::new() });
        }
        let TieredText { base, tiers } = serde_json::from_str(text).context("bad tiers")?;
        let mut read = Vec::with_capacity(tiers.len());
        for TierText { start, price } in tiers {
            if read.last().is_some_and(|(before, _)| *before >= start) {
                bail!("tiers that do not rise");
            }
            read.push((start, nanos_rounded_up(price.get())?));
        }
        Ok(Self { base: nanos_rounded_up(base.get())?, tiers: read })
    }

    /// What it is for inputs that are longer than `start`, up to the next tier of any price.
    fn above(&self, start: Option<u64>) -> u64 {
        let reached = self.tiers.iter().rev().find(|(tier, _)| Some(*tier) <= start);
        reached.map_or(self.base, |(_, price)| *price)
    }

    fn all(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.base).chain(self.tiers.iter().map(|(_, price)| *price))
    }

    fn cheapest(&self) -> u64 {
        self.all().min().unwrap_or(self.base)
    }

    fn dearest(&self) -> u64 {
        self.all().max().unwrap_or(self.base)
    }
}
