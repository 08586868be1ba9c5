//! The JSON of views, described by schemas that are made from their types.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::costs::Costs;
use crate::costs::home::HomeCosts;
use crate::questions::QuestionView;
use crate::result::ResultJson;
use crate::spent::Spent;

/// Each view with its schema, by the name that programs know it by.
#[must_use]
pub fn schemas() -> [(&'static str, Schema); 5] {
    [
        ("costs", schema::<Costs>()),
        ("home_costs", schema::<HomeCosts>()),
        ("question", schema::<QuestionView<'static>>()),
        ("result", schema::<ResultJson<'static>>()),
        ("spent", schema::<Spent>()),
    ]
}

/// Of what is written: a key that is left out when it has nothing is not required.
fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, to_value};
    use spinney_kernel::budget::{Resource, Shortfall};

    use super::*;
    use crate::remedy::Remedy;
    use crate::result::{ResultError, TreeResult};

    /// A key that is gone or has another type breaks programs: these are read before they change.
    #[test]
    fn the_schemas_of_views_are_the_reviewed_ones() {
        let lines = schemas().map(|(name, schema)| {
            let schema = serde_json::to_string_pretty(&schema).unwrap();
            format!("{name}: {schema}")
        });
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn what_is_written_fits_its_schema() {
        let fits = |name: &str, written: Value| {
            let (_, schema) = schemas().into_iter().find(|(known, _)| *known == name).unwrap();
            let schema = to_value(schema).unwrap();
            let errors: Vec<String> = jsonschema::validator_for(&schema)
                .unwrap()
                .iter_errors(&written)
                .map(|error| error.to_string())
                .collect();
            assert!(errors.is_empty(), "{name} {written}: {errors:?}");
        };
        fits("spent", to_value(Spent::default()).unwrap());
        let mut result = TreeResult::none(None);
        fits("result", to_value(result.json(None)).unwrap());
        let short = Shortfall {
            resource: Resource::Cost,
            limit: 1,
            reserve: 0,
            spent: 1,
            held: 0,
            lent: 0,
            asked: 1,
        };
        result.error = Some(ResultError {
            code: "ceiling".to_owned(),
            message: "no room".to_owned(),
            remedy: Remedy::LargerBudget,
            numbers: Some(("lead".parse().unwrap(), short)),
        });
        result.files = vec!["a.md".to_owned()];
        fits("result", to_value(result.json(Some("raise it"))).unwrap());
    }
}
