//! The shape of genai-prices' data, as far as prices need it. A key of a model or a rule that is not known here is an
//! error: it could change what a call costs.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What a request must say to be billed at other prices. Drivers refuse such requests, so these prices never apply.
const REQUEST_KEYS: [&str; 4] = ["processing", "route", "search_type", "service_tier"];

#[derive(Deserialize)]
pub(super) struct Provider {
    pub(super) id: String,
    pub(super) models: Vec<Model>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    pub(super) id: String,
    #[serde(rename = "match")]
    pub(super) matches: Value,
    pub(super) context_window: Option<u64>,
    prices: Box<RawValue>,
    #[serde(default)]
    price_variants: Vec<Variant>,
    #[serde(default, rename = "name")]
    _name: Option<String>,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default, rename = "price_comments")]
    _comments: Option<String>,
    #[serde(default)]
    pub(super) deprecated: bool,
}

#[derive(Deserialize)]
struct Variant {
    when: BTreeMap<String, String>,
}

/// Prices, and when they hold: the last ones whose condition is met. Numbers stay text, because a float is not what was
/// written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dated {
    pub(super) constraint: Option<Constraint>,
    pub(super) prices: Prices,
}

pub(super) type Prices = BTreeMap<String, Box<RawValue>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Constraint {
    pub(super) start_date: Option<String>,
    pub(super) start_time: Option<String>,
    pub(super) end_time: Option<String>,
}

impl Model {
    pub(super) fn dated(&self) -> anyhow::Result<Vec<Dated>> {
        let text = self.prices.get();
        if text.starts_with('[') {
            return serde_json::from_str(text).context("bad prices");
        }
        let prices = serde_json::from_str(text).context("bad prices")?;
        Ok(vec![Dated { constraint: None, prices }])
    }

    /// Refuses prices that hold for requests of an unexpected kind.
    pub(super) fn check_variants(&self) -> anyhow::Result<()> {
        let keys = self.price_variants.iter().flat_map(|variant| variant.when.keys());
        match keys.into_iter().find(|key| !REQUEST_KEYS.contains(&key.as_str())) {
            Some(key) => bail!("prices that depend on `{key}` of a request: decide what drivers do about it"),
            None => Ok(()),
        }
    }
}

/// A rule that says which names mean a model, with its literals in lower case, as names are compared.
pub(super) fn rule(written: &Value) -> anyhow::Result<Value> {
    let Some((kind, value)) =
        written.as_object().filter(|rule| rule.len() == 1).and_then(|rule| rule.iter().next())
    else {
        bail!("a rule that is not one of a kind: {written}");
    };
    let value = match (kind.as_str(), value) {
        ("and" | "or", Value::Array(rules)) => {
            ensure!(!rules.is_empty(), "an empty `{kind}`");
            Value::Array(rules.iter().map(rule).collect::<Result<_, _>>()?)
        }
        ("equals" | "starts_with" | "ends_with" | "contains", Value::String(text)) => {
            Value::String(text.to_lowercase())
        }
        ("regex", Value::String(text)) => Value::String(text.clone()),
        _ => bail!("an unknown rule: {written}"),
    };
    Ok(Value::Object(Map::from_iter([(kind.clone(), value)])))
}
