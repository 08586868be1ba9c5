//! What many trees spent together: by tag, by program or name, or by day. Each tree counts once; a tree with several tags is
//! in the row of each.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use spinney_kernel::definition::Tags;

use super::json::SumsJson;
use super::{Breakdown, Costs, CostsBy, Sums};

/// The name of what was spent by trees without a tag.
pub const NO_TAG: &str = "(no tag)";

/// What the spending of many trees is summed up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeCostsBy {
    /// By tag, as `NAME=VALUE`.
    Tag,
    /// By the program of a run, or the name of a tree.
    Program,
    /// By day of the booking (UTC).
    Day,
}

impl HomeCostsBy {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tag => "tag",
            Self::Program => "program",
            Self::Day => "day",
        }
    }
}

/// The spending of many trees.
pub struct HomeCosts {
    by: HomeCostsBy,
    /// How many trees there are.
    pub trees: u64,
    /// The sum over all trees.
    pub total: Sums,
    breakdown: Breakdown,
}

impl HomeCosts {
    /// Of no tree yet.
    #[must_use]
    pub fn new(by: HomeCostsBy) -> Self {
        Self { by, trees: 0, total: Sums::default(), breakdown: Breakdown::default() }
    }

    /// What it is summed up by.
    #[must_use]
    pub const fn by(&self) -> HomeCostsBy {
        self.by
    }

    /// Adds a tree. What the origin of a branch spent is the origin's.
    pub fn add(&mut self, tree: &Costs) {
        self.trees += 1;
        self.total.add(&tree.total);
        let definition = tree.definition.as_deref();
        match self.by {
            HomeCostsBy::Tag => self.add_tags(definition.map(|definition| &*definition.tags), &tree.total),
            HomeCostsBy::Program => {
                let name = definition.map_or("", |definition| definition.name.as_str());
                self.breakdown.add(name, &tree.total);
            }
            HomeCostsBy::Day => {
                for (day, sums) in tree.by(CostsBy::Day).rows() {
                    self.breakdown.add(day, sums);
                }
            }
        }
    }

    fn add_tags(&mut self, tags: Option<&Tags>, sums: &Sums) {
        let Some(tags) = tags.filter(|tags| !tags.is_empty()) else {
            self.breakdown.add(NO_TAG, sums);
            return;
        };
        for (name, value) in tags {
            self.breakdown.add(&format!("{name}={value}"), sums);
        }
    }

    /// The rows: days in their order, everything else with the dearest first.
    #[must_use]
    pub fn rows(&self) -> Vec<&(String, Sums)> {
        let mut rows = self.breakdown.rows();
        if self.by == HomeCostsBy::Day {
            rows.sort_by(|one, other| one.0.cmp(&other.0));
        }
        rows
    }
}

/// For programs.
impl Serialize for HomeCosts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.rows();
        let json = HomeCostsJson {
            kind: "home_costs",
            by: self.by.as_str(),
            trees: self.trees,
            total: SumsJson::new(&self.total),
            rows: rows.iter().map(|(name, sums)| SumsJson::named(name, sums)).collect(),
        };
        json.serialize(serializer)
    }
}

impl JsonSchema for HomeCosts {
    fn schema_name() -> Cow<'static, str> {
        "HomeCosts".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        HomeCostsJson::json_schema(generator)
    }
}

#[derive(Serialize, JsonSchema)]
struct HomeCostsJson<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    /// `tag`, `program` or `day`.
    by: &'static str,
    trees: u64,
    total: SumsJson<'a>,
    /// A tree with several tags is in the row of each.
    rows: Vec<SumsJson<'a>>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use spinney_kernel::budget::Resource;
    use spinney_kernel::primitives::TreeId;
    use spinney_testkit::sim;

    use super::*;
    use crate::TreeFold as _;
    use crate::costs::CostsFold;

    fn tree(seed: u64, tags: &[(&str, &str)]) -> Costs {
        let mut fold = CostsFold::new(TreeId::new([1; 16]));
        sim::batches(seed).unwrap().iter().for_each(|batch| assert!(fold.take(batch).is_continue()));
        let mut costs = fold.costs();
        let tags: BTreeMap<String, String> =
            tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Arc::make_mut(costs.definition.as_mut().unwrap()).tags = Arc::new(tags);
        costs
    }

    fn sum<'a>(rows: impl Iterator<Item = &'a Sums>) -> Sums {
        rows.fold(Sums::default(), |mut all, sums| {
            all.add(sums);
            all
        })
    }

    /// X11 (a home): over 300 random trees, days, programs and one tag each sum up to what the ledgers say.
    #[test]
    fn what_a_home_spent_is_the_sum_of_the_ledgers_by_every_table() {
        for by in [HomeCostsBy::Tag, HomeCostsBy::Program, HomeCostsBy::Day] {
            let (mut home, mut ledgers) = (HomeCosts::new(by), 0);
            for seed in 0..300 {
                let tags: &[(&str, &str)] = if seed % 3 == 0 { &[] } else { &[("pr", "7")] };
                let costs = tree(seed, tags);
                ledgers += costs.ledger().all.get(Resource::Cost);
                home.add(&costs);
            }
            assert!(ledgers > 0);
            assert_eq!((home.trees, home.total.spent.get(Resource::Cost)), (300, ledgers), "{by:?}");
            assert_eq!(sum(home.rows().into_iter().map(|(_, sums)| sums)), home.total, "{by:?}");
        }
    }

    /// A tree with two tags is in both rows and once in the total.
    #[test]
    fn a_tree_is_in_the_row_of_each_of_its_tags() {
        let costs = tree(3, &[("pr", "123"), ("team", "search")]);
        let mut home = HomeCosts::new(HomeCostsBy::Tag);
        home.add(&costs);
        home.add(&tree(3, &[]));
        let names: Vec<&str> = home.rows().into_iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["pr=123", "team=search", NO_TAG]);
        assert_eq!(home.rows()[0].1, costs.total);
        assert_eq!(home.total.count, 2 * costs.total.count);
    }
}
