//! What models cost: the price table that is in the binary, and how a name finds its price in it.
//!
//! The table is made by `cargo xtask prices` from data of others (`crates/drivers/prices`). A price is found only where it
//! bounds what a call can cost; whatever is unknown, ambiguous or billed by a unit that no hold bounds has none, with the
//! reason. Decision 0027 says which.

mod model_name;
mod name_rule;
mod params;
mod priced_name;

use serde::Deserialize;
use spinney_kernel::budget::Price;

use model_name::ModelName;
use name_rule::{NameRule, NameRuleError, with_dashed_dates};
pub use params::refused_param;
pub use priced_name::{PricedName, PricedNameError};

const EMBEDDED: &str = include_str!("../../prices/table.jsonl");

/// Longest name that is looked up, in bytes: rules are matched against it.
const NAME_BYTES_MAX: usize = 256;

/// Our names of providers that the table calls otherwise.
const PROVIDERS: [(&str, &str); 4] =
    [("bedrock", "aws"), ("gemini", "google"), ("together-ai", "together"), ("xai", "x-ai")];

/// Parts of names of models that search the web on their own. Searches are billed apart.
const SEARCHES_ITSELF: [&str; 6] = ["-online", "-search", ":online", "compound", "deep-research", "sonar"];

/// Prices of models by provider and name.
#[derive(Debug)]
pub struct PriceTable {
    /// Where the prices are from.
    pub source: String,
    /// The day they are from, as `2026-10-30`.
    pub date: String,
    providers: Vec<Provider>,
}

#[derive(Debug)]
struct Provider {
    id: String,
    /// Why none of its models has a price.
    unpriced: Option<String>,
    models: Vec<TableModel>,
}

/// A model of the table.
#[derive(Debug)]
pub struct TableModel {
    /// Its name, as its provider writes it.
    pub name: String,
    /// How many tokens of input and output together it takes, if the source says.
    pub context: Option<u64>,
    /// Whether the source calls it deprecated.
    pub is_deprecated: bool,
    rule: NameRule,
    price: Result<Price, String>,
}

/// A model of the table as a list shows it.
#[derive(Clone, Copy, Debug)]
pub struct ListedModel<'t> {
    pub provider: &'t str,
    pub model: &'t TableModel,
    /// Whether it has a price, is not deprecated, and its provider lists no newer version of it.
    pub is_current: bool,
}

/// Why there is no price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPrice {
    #[error("the price table has no provider `{provider}`")]
    UnknownProvider { provider: String },
    #[error("the price table has no model `{model}` of `{provider}`")]
    UnknownModel { provider: String, model: String },
    #[error("the maximum price of `{model}` is unknown: {reason}")]
    Unbounded { model: String, reason: String },
    #[error(transparent)]
    Rule(NameRuleError),
}

/// A table that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the price table: {reason}")]
pub struct PriceTableError {
    line: usize,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadLine {
    source: String,
    date: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderLine {
    provider: String,
    /// Why none of its models has a price.
    unpriced: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelLine {
    model: String,
    #[serde(rename = "match")]
    rule: Option<NameRule>,
    context: Option<u64>,
    #[serde(default)]
    deprecated: bool,
    price: Option<Price>,
    unpriced: Option<String>,
}

impl PriceTable {
    /// The table that is in the binary. Reading it takes a few milliseconds.
    ///
    /// # Errors
    /// Never, as long as the tests of this crate pass.
    pub fn embedded() -> Result<Self, PriceTableError> {
        Self::read(EMBEDDED)
    }

    /// A table as `cargo xtask prices` writes it.
    ///
    /// # Errors
    /// Names the line, and what is wrong with it.
    pub fn read(text: &str) -> Result<Self, PriceTableError> {
        let mut lines = text.lines().enumerate();
        let Some((at, head)) = lines.next() else {
            return Err(PriceTableError { line: 1, reason: "the table is empty".to_owned() });
        };
        let HeadLine { source, date } = json(at, head)?;
        let mut providers: Vec<Provider> = Vec::new();
        for (at, line) in lines {
            if line.starts_with(r#"{"provider""#) {
                let ProviderLine { provider, unpriced } = json(at, line)?;
                providers.push(Provider { id: provider, unpriced, models: Vec::new() });
                continue;
            }
            let Some(provider) = providers.last_mut() else {
                return Err(wrong(at, "a model without a provider"));
            };
            match TableModel::from_line(json(at, line)?, provider.unpriced.as_deref()) {
                Some(model) => provider.models.push(model),
                None => return Err(wrong(at, "either a price or a reason")),
            }
        }
        Ok(Self { source, date, providers })
    }

    /// What a model costs that this provider itself serves. A caller of another address under the name of a provider has
    /// other prices, and must not ask here.
    ///
    /// # Errors
    /// Says why it is unknown.
    pub fn price(&self, provider: &str, model: &str) -> Result<&Price, NoPrice> {
        let found = self.find(provider, model)?;
        match (&found.price, searching(model)) {
            (Ok(price), None) => Ok(price),
            (Err(reason), _) => Err(NoPrice::Unbounded { model: model.to_owned(), reason: reason.clone() }),
            (Ok(_), Some(reason)) => Err(NoPrice::Unbounded { model: model.to_owned(), reason }),
        }
    }

    /// The model that a name means, priced or not.
    ///
    /// # Errors
    /// Says what is unknown.
    pub fn find(&self, provider: &str, model: &str) -> Result<&TableModel, NoPrice> {
        let folded = provider.to_lowercase();
        let id = PROVIDERS.iter().find(|(name, _)| *name == folded).map_or(folded.as_str(), |(_, id)| *id);
        let Some(known) = self.providers.iter().find(|known| known.id == id) else {
            return Err(NoPrice::UnknownProvider {
                provider: provider.chars().take(NAME_BYTES_MAX).collect(),
            });
        };
        if model.len() <= NAME_BYTES_MAX {
            let name = model.to_lowercase();
            // Some write the date in a name without dashes.
            for name in [Some(name.clone()), with_dashed_dates(&name)].into_iter().flatten() {
                for listed in &known.models {
                    if listed.rule.matches(&name).map_err(NoPrice::Rule)? {
                        return Ok(listed);
                    }
                }
            }
        }
        let model = model.chars().take(NAME_BYTES_MAX).collect();
        Err(NoPrice::UnknownModel { provider: provider.to_owned(), model })
    }

    /// The providers, in the order of the table.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().map(|provider| provider.id.as_str())
    }

    /// Every model, in the order of the table.
    pub fn models(&self) -> impl Iterator<Item = ListedModel<'_>> {
        self.providers.iter().flat_map(Provider::listed)
    }
}

impl Provider {
    fn listed(&self) -> Vec<ListedModel<'_>> {
        let usable = |model: &TableModel| model.price.is_ok() && !model.is_deprecated;
        let names: Vec<Option<ModelName>> =
            self.models.iter().map(|model| usable(model).then(|| ModelName::new(&model.name))).collect();
        let is_current = |name: &Option<ModelName>| {
            name.as_ref()
                .is_some_and(|name| !names.iter().flatten().any(|other| name.is_superseded_by(other)))
        };
        let listed = self.models.iter().zip(&names);
        listed
            .map(|(model, name)| ListedModel { provider: &self.id, model, is_current: is_current(name) })
            .collect()
    }
}

impl TableModel {
    /// None if its line says nothing about its price, or two things.
    fn from_line(line: ModelLine, provider_unpriced: Option<&str>) -> Option<Self> {
        let ModelLine { model: name, rule, context, deprecated: is_deprecated, price, unpriced } = line;
        let price = match (price, unpriced, provider_unpriced) {
            (Some(price), None, None) => searching(&name).map_or(Ok(price), Err),
            (None, Some(reason), None) => Err(reason),
            (None, None, Some(reason)) => Err(reason.to_owned()),
            _ => return None,
        };
        let rule = rule.unwrap_or_else(|| NameRule::Equals(name.to_lowercase()));
        Some(Self { name, context, is_deprecated, rule, price })
    }

    /// What it costs, or why that is unknown.
    pub fn price(&self) -> Result<&Price, &str> {
        self.price.as_ref().map_err(String::as_str)
    }
}

/// Why a model of this name has no price although its tokens have one.
fn searching(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    let searches = SEARCHES_ITSELF.iter().any(|part| name.contains(part));
    searches.then(|| "it searches the web on its own, which is billed separately".to_owned())
}

fn json<'a, T: Deserialize<'a>>(at: usize, line: &'a str) -> Result<T, PriceTableError> {
    serde_json::from_str(line).map_err(|error| wrong(at, &error.to_string()))
}

fn wrong(at: usize, reason: &str) -> PriceTableError {
    PriceTableError { line: at + 1, reason: reason.to_owned() }
}
