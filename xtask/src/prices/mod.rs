//! The price table of the binary, from the committed copy of genai-prices' data.
//!
//! Decimal dollars become whole nano-dollars per million tokens, rounded up; tiers of single prices become whole sets of
//! rates; a model whose bill can have a unit that no hold bounds is written down as unpriced, with the reason. Whatever
//! this does not understand is an error: a person looks at it before it becomes a price. Decision 0027 says which units
//! count and why.

mod calendar;
mod decimal;
mod rates;
mod source;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use rates::Card;
use source::{Constraint, Dated, Model, Provider};

const FOLDER: &str = "crates/drivers/prices";

/// Providers whose prices in the source are not a bound, and why.
const NO_BOUND: [(&str, &str); 4] = [
    ("azure", "the source has the prices of global deployments only, and regional ones cost more"),
    ("databricks", "the source has the prices of some regions only, and others cost more"),
    ("openrouter", "the source has the price of one upstream, and another may answer at a higher one"),
    ("zhipuai", "the source has the cheapest tier only, converted from another currency"),
];

/// Where the table is, below the root of the workspace.
pub const TABLE: &str = "crates/drivers/prices/table.jsonl";

/// What `source.toml` says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Origin {
    package: String,
    version: String,
    date: String,
}

/// The text of the table, from the files below the root of the workspace.
///
/// # Errors
/// Names the file, and the provider and model where something is not understood.
pub fn table(root: &Path) -> anyhow::Result<String> {
    let read = |name: &str| {
        let path = root.join(FOLDER).join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {FOLDER}/{name}"))
    };
    convert(&read("source.toml")?, &read("source.json")?)
}

/// The text of the table: a line about the source, then for each provider a line, followed by one for each model. Each
/// model has a price or the reason why it has none, unless its provider has a reason for all of them.
///
/// # Errors
/// Names the provider and model where something is not understood.
pub fn convert(origin: &str, source: &str) -> anyhow::Result<String> {
    let Origin { package, version, date } = toml::from_str(origin).context("bad source.toml")?;
    calendar::midnight_ms(&date).context("bad date in source.toml")?;
    let providers: Vec<Provider> = serde_json::from_str(source).context("bad source.json")?;
    let mut lines = String::new();
    let mut push = |line: &Value| writeln!(lines, "{line}");
    push(&json!({ "source": format!("{package} {version}"), "date": date }))?;
    for provider in &providers {
        let no_bound = NO_BOUND.iter().find(|(id, _)| *id == provider.id);
        push(&match no_bound {
            Some((id, reason)) => json!({ "provider": id, "unpriced": reason }),
            None => json!({ "provider": provider.id }),
        })?;
        for model in &provider.models {
            let line = model_line(model, no_bound.is_some())
                .with_context(|| format!("{} / {}", provider.id, model.id))?;
            push(&Value::Object(line))?;
        }
    }
    Ok(lines)
}

fn model_line(model: &Model, is_unpriced: bool) -> anyhow::Result<Map<String, Value>> {
    model.check_variants()?;
    let mut line = Map::from_iter([("model".to_owned(), json!(model.id))]);
    let rule = source::rule(&model.matches)?;
    // Most models are called by their own name alone.
    if rule != json!({ "equals": model.id.to_lowercase() }) {
        line.insert("match".to_owned(), rule);
    }
    if let Some(context) = model.context_window {
        line.insert("context".to_owned(), json!(context));
    }
    if model.deprecated {
        line.insert("deprecated".to_owned(), json!(true));
    }
    let known = price(&model.dated()?)?;
    if !is_unpriced {
        let (key, value) = match known {
            Ok(price) => ("price", Value::Object(price)),
            Err(reason) => ("unpriced", json!(reason)),
        };
        line.insert(key.to_owned(), value);
    }
    Ok(line)
}

/// A price as the kernel reads it, or why the maximum cost of a call is unknown.
fn price(dated: &[Dated]) -> anyhow::Result<Result<Map<String, Value>, String>> {
    let Some((first, later)) = dated.split_first() else { bail!("no prices at all") };
    ensure!(first.constraint.is_none(), "the first price is not the one that holds without a condition");
    let mut price = match Card::from_prices(&first.prices)? {
        Ok(card) => card.object(),
        Err(reason) => return Ok(Err(reason)),
    };
    let mut changes = Vec::with_capacity(later.len());
    for Dated { constraint, prices } in later {
        let Some(constraint) = constraint else { bail!("two prices hold without a condition") };
        let active = match constraint {
            Constraint { start_date: Some(date), start_time: None, end_time: None } => {
                json!({ "from": calendar::midnight_ms(date)? })
            }
            Constraint { start_date: None, start_time: Some(start), end_time: Some(end) } => {
                json!({ "daily": { "start_s": calendar::second_of_day(start)?, "end_s": calendar::second_of_day(end)? } })
            }
            Constraint { .. } => bail!("a condition that is neither a date nor a time of day"),
        };
        match Card::from_prices(prices)? {
            Ok(card) => changes.push(card.change(active)),
            Err(reason) => return Ok(Err(reason)),
        }
    }
    if !changes.is_empty() {
        price.insert("changes".to_owned(), Value::Array(changes));
    }
    Ok(Ok(price))
}
