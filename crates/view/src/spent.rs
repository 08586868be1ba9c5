//! What is spent, and the part of it that is presumed: the same words and the same JSON in every view.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::ser::{Error as _, Serializer};
use serde_json::value::RawValue;
use spinney_kernel::budget::{Amounts, Resource, usd};
use spinney_kernel::primitives::grouped;
use spinney_kernel::world::AgentView;

/// Marks a sum that includes presumed amounts, where there is no room to say how much. [`Spent::footnote`] explains it.
pub const MARK: &str = "*";

/// What was spent. `{}` has every amount that is not zero: `$4.09 ($4.00 presumed), 1,234 tokens (1,000 presumed), 2 steps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "SpentJson")]
pub struct Spent {
    /// All of it.
    pub all: Amounts,
    /// The part that no provider reported: calls that are booked at their full hold.
    pub presumed: Amounts,
}

impl Spent {
    /// What an agent and everything below it spent.
    #[must_use]
    pub const fn from_view(view: &AgentView) -> Self {
        Self { all: view.spent, presumed: view.presumed }
    }

    /// The amount of one resource.
    #[must_use]
    pub const fn get(&self, resource: Resource) -> u64 {
        self.all.get(resource)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self { all: self.all.plus(&other.all), presumed: self.presumed.plus(&other.presumed) }
    }

    /// What is left without the other.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self { all: self.all.minus(&other.all), presumed: self.presumed.minus(&other.presumed) }
    }

    /// One resource with its unit: `1,234 tokens (1,000 presumed)`.
    #[must_use]
    pub fn amount(&self, resource: Resource) -> String {
        let all = resource.amount(self.get(resource));
        match (self.presumed.get(resource), self.get(resource)) {
            (0, _) => format!("{all:#}"),
            (presumed, spent) if presumed == spent => format!("{all:#} (all presumed)"),
            (presumed, _) if resource == Resource::Cost => format!("{all:#} ({} presumed)", usd(presumed)),
            (presumed, _) => format!("{all:#} ({} presumed)", grouped(presumed)),
        }
    }

    /// The cost that is presumed, or the tokens if there is only that: for places with room for one number.
    #[must_use]
    pub fn presumed_first(&self) -> Option<(Resource, u64)> {
        let amounts =
            [Resource::Cost, Resource::Tokens].map(|resource| (resource, self.presumed.get(resource)));
        amounts.into_iter().find(|(_, amount)| *amount > 0)
    }

    /// [`MARK`] if a part of this resource is presumed.
    #[must_use]
    pub const fn mark(&self, resource: Resource) -> &'static str {
        if self.presumed.get(resource) > 0 { MARK } else { "" }
    }

    /// What [`MARK`] means below a view whose total this is.
    #[must_use]
    pub fn footnote(&self) -> Option<String> {
        let presumed = self.presumed;
        (!presumed.is_zero()).then(|| format!("{MARK} includes what is presumed: {presumed:#}"))
    }
}

/// What a call wrote, of what it spent and the input that its provider reported.
#[must_use]
pub const fn output_tokens(spent: &Amounts, input: u64) -> u64 {
    spent.get(Resource::Tokens).saturating_sub(input)
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let present = Resource::ALL.into_iter().filter(|resource| self.get(*resource) > 0);
        let amounts: Vec<String> = present.map(|resource| self.amount(resource)).collect();
        f.write_str(if amounts.is_empty() { "nothing" } else { "" })?;
        f.write_str(&amounts.join(", "))
    }
}

/// The same for programs.
#[derive(Serialize, JsonSchema)]
struct SpentJson {
    cost_usd: Dollars,
    cost_nanos: u64,
    tokens: u64,
    steps: u64,
    tool_calls: u64,
    retries: u64,
    /// The part that no provider reported.
    presumed: PresumedJson,
}

/// Only cost and tokens are ever presumed: steps, tool calls and retries are counted as calls start.
#[derive(Serialize, JsonSchema)]
struct PresumedJson {
    cost_usd: Dollars,
    cost_nanos: u64,
    tokens: u64,
}

impl From<Spent> for SpentJson {
    fn from(spent: Spent) -> Self {
        let presumed = spent.presumed;
        Self {
            cost_usd: Dollars(spent.get(Resource::Cost)),
            cost_nanos: spent.get(Resource::Cost),
            tokens: spent.get(Resource::Tokens),
            steps: spent.get(Resource::Steps),
            tool_calls: spent.get(Resource::ToolCalls),
            retries: spent.get(Resource::Retries),
            presumed: PresumedJson {
                cost_usd: Dollars(presumed.get(Resource::Cost)),
                cost_nanos: presumed.get(Resource::Cost),
                tokens: presumed.get(Resource::Tokens),
            },
        }
    }
}

/// Nano-dollars that are written as dollars: a number, from its digits, without floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dollars(pub u64);

impl JsonSchema for Spent {
    fn schema_name() -> Cow<'static, str> {
        "Spent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SpentJson::json_schema(generator)
    }
}

impl JsonSchema for Dollars {
    fn schema_name() -> Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits = usd(self.0).trim_start_matches('$').to_owned();
        RawValue::from_string(digits).map_err(S::Error::custom)?.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G40 (the words): each amount says which part of it is presumed.
    #[test]
    fn g40_each_amount_says_which_part_is_presumed() {
        let amounts = |nanos, tokens| Amounts::cost(nanos).with(Resource::Tokens, tokens);
        let spent =
            |presumed| Spent { all: amounts(4_090_000_000, 1_234).with(Resource::Steps, 2), presumed };
        assert_eq!(spent(Amounts::ZERO).to_string(), "$4.09, 1,234 tokens, 2 steps");
        assert_eq!(
            spent(amounts(4_000_000_000, 1_234)).to_string(),
            "$4.09 ($4.00 presumed), 1,234 tokens (all presumed), 2 steps"
        );
        assert_eq!(Spent::default().to_string(), "nothing");
        assert_eq!(
            spent(amounts(4_000_000_000, 1_000)).footnote().as_deref(),
            Some("* includes what is presumed: $4.00, 1,000 tokens")
        );
        assert_eq!(spent(Amounts::ZERO).footnote(), None);
        insta::assert_snapshot!(
            serde_json::to_string(&spent(amounts(4_000_000_000, 1_000))).unwrap(),
            @r#"{"cost_usd":4.09,"cost_nanos":4090000000,"tokens":1234,"steps":2,"tool_calls":0,"retries":0,"presumed":{"cost_usd":4.00,"cost_nanos":4000000000,"tokens":1000}}"#
        );
    }
}
