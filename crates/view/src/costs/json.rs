//! Costs for programs: every table.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::primitives::TreeId;

use super::{Costs, CostsBy, Sums};

/// It is written row by row: a tree may have many agents.
impl Serialize for Costs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let before = self.before.iter();
        let before = before.map(|(tree, sums)| SumsJson { tree: Some(*tree), ..SumsJson::new(sums) });
        let table = |by| TableJson { costs: self, by };
        let json = CostsJson {
            kind: "costs",
            tree: self.world.tree(),
            state: self.world.state().as_str(),
            seq: self.world.seq().0,
            total: SumsJson::new(&self.total),
            agents: table(CostsBy::Agent),
            roles: table(CostsBy::Role),
            models: table(CostsBy::Model),
            steps: table(CostsBy::Step),
            attempts: table(CostsBy::Attempt),
            before: before.collect(),
        };
        json.serialize(serializer)
    }
}

impl JsonSchema for Costs {
    fn schema_name() -> Cow<'static, str> {
        "Costs".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        CostsJson::json_schema(generator)
    }
}

#[derive(Serialize, JsonSchema)]
struct CostsJson<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[schemars(with = "String")]
    tree: TreeId,
    state: &'static str,
    /// The last event that is in them.
    seq: u64,
    total: SumsJson<'a>,
    #[schemars(with = "Vec<SumsJson<'_>>")]
    agents: TableJson<'a>,
    #[schemars(with = "Vec<SumsJson<'_>>")]
    roles: TableJson<'a>,
    #[schemars(with = "Vec<SumsJson<'_>>")]
    models: TableJson<'a>,
    #[schemars(with = "Vec<SumsJson<'_>>")]
    steps: TableJson<'a>,
    #[schemars(with = "Vec<SumsJson<'_>>")]
    attempts: TableJson<'a>,
    /// What the origins of a branch spent before it.
    before: Vec<SumsJson<'a>>,
}

struct TableJson<'a> {
    costs: &'a Costs,
    by: CostsBy,
}

impl Serialize for TableJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { costs, by } = self;
        let breakdown = costs.by(*by);
        serializer.collect_seq(breakdown.rows().into_iter().map(|(name, sums)| {
            let role = (*by == CostsBy::Agent).then(|| costs.role(name));
            SumsJson { name: Some(name), role, ..SumsJson::new(sums) }
        }))
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SumsJson<'a> {
    calls: u64,
    spent: AmountsJson,
    presumed: AmountsJson,
    held: AmountsJson,
    overrun: AmountsJson,
    input_tokens: u64,
    cached_tokens: u64,
    saved_nanos: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    tree: Option<TreeId>,
}

impl<'a> SumsJson<'a> {
    pub(super) const fn named(name: &'a str, sums: &Sums) -> Self {
        Self { name: Some(name), ..Self::new(sums) }
    }

    pub(super) const fn new(sums: &Sums) -> Self {
        Self {
            calls: sums.count,
            spent: AmountsJson::new(&sums.spent),
            presumed: AmountsJson::new(&sums.presumed),
            held: AmountsJson::new(&sums.held),
            overrun: AmountsJson::new(&sums.overrun),
            input_tokens: sums.input_tokens,
            cached_tokens: sums.cached_tokens,
            saved_nanos: sums.saved_nanos,
            name: None,
            role: None,
            tree: None,
        }
    }
}

/// Integers only: dollars in nano-dollars.
#[derive(Serialize, JsonSchema)]
struct AmountsJson {
    cost_nanos: u64,
    tokens: u64,
    steps: u64,
    tool_calls: u64,
    retries: u64,
}

impl AmountsJson {
    const fn new(amounts: &Amounts) -> Self {
        Self {
            cost_nanos: amounts.get(Resource::Cost),
            tokens: amounts.get(Resource::Tokens),
            steps: amounts.get(Resource::Steps),
            tool_calls: amounts.get(Resource::ToolCalls),
            retries: amounts.get(Resource::Retries),
        }
    }
}
