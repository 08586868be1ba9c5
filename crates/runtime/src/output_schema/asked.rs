//! Schemas in what a model asks for: a question with a form, and steps of a pipeline. The kernel decides these calls and
//! cannot read a schema, so it learns from here which of them cannot be made.

use serde_json::{Map, Value};
use spinney_kernel::definition::{Builtin, FieldMismatch};
use spinney_kernel::record::{RefusedAsk, ToolAsk};

use super::{check, fit};

/// Those of an answer's tool calls with an invalid schema, or with a default answer that does not fit.
pub(crate) fn refused(asks: &[ToolAsk]) -> Vec<RefusedAsk> {
    let named = [Builtin::AskHuman.as_str(), Builtin::RunPipeline.as_str()];
    let may_have = |ask: &ToolAsk| named.contains(&ask.tool.as_str()) && ask.args.contains("_schema");
    let refused = |(place, ask): (u32, &ToolAsk)| {
        let args = serde_json::from_str(&ask.args).ok().filter(|_| may_have(ask))?;
        Some(RefusedAsk { place, reason: problem(&args)? })
    };
    (0..).zip(asks).filter_map(refused).collect()
}

fn problem(value: &Value) -> Option<String> {
    match value {
        Value::Object(fields) => own(fields).or_else(|| fields.values().find_map(problem)),
        Value::Array(items) => items.iter().find_map(problem),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// What is wrong with the schemas of one object.
fn own(fields: &Map<String, Value>) -> Option<String> {
    let schema = |key: &str| fields.get(key).filter(|schema| schema.is_object()).map(Value::to_string);
    let wrong = |key: &str| {
        let FieldMismatch { path, expected } = check(&schema(key)?).err()?;
        let at = if path.is_empty() { String::new() } else { format!(" at {path}") };
        Some(format!("`{key}` cannot be used{at}: {expected}"))
    };
    let unfit = || unfit_default(&schema("answer_schema")?, fields.get("default")?.as_str()?);
    ["answer_schema", "output_schema"].into_iter().find_map(wrong).or_else(unfit)
}

/// Why a default answer cannot be one, if it cannot.
pub(crate) fn unfit_default(schema: &str, default: &str) -> Option<String> {
    let mismatch = fit(schema, default).err()?;
    Some(format!("the default answer does not fit its schema: {}", mismatch.describe()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tool: &str, args: &str) -> ToolAsk {
        ToolAsk {
            id: "1".to_owned(),
            tool: tool.to_owned(),
            args: args.to_owned(),
            tokens: None,
            told_tokens: None,
        }
    }

    fn reasons(tool: &str, args: &str) -> Vec<String> {
        let ask = asked(tool, args);
        refused(&[asked("other", "{}"), ask])
            .into_iter()
            .map(|refused| format!("{}: {}", refused.place, refused.reason))
            .collect()
    }

    #[test]
    fn a_call_with_a_schema_that_is_none_is_refused() {
        for bad in [
            r#"{"type":"int"}"#,
            r#"{"properties":{"a":{"required":true}}}"#,
            r#"{"pattern":"(?=a)"}"#,
            r##"{"$ref":"#/nowhere"}"##,
            r#"{"$ref":"https://example.org/schema"}"#,
            r#"{"$ref":"file:///etc/passwd"}"#,
        ] {
            let asked = reasons("ask_human", &format!(r#"{{"question":"How?","answer_schema":{bad}}}"#));
            assert!(
                asked.len() == 1 && asked[0].starts_with("1: `answer_schema` cannot be used"),
                "{bad}: {asked:?}"
            );
            let step = format!(r#"{{"pipeline":[{{"ask":"How?","answer_schema":{bad}}}]}}"#);
            assert_eq!(reasons("run_pipeline", &step).len(), 1, "{bad}");
            // Another tool may have arguments of that name.
            assert_eq!(reasons("other", &step), [""; 0]);
        }
    }

    #[test]
    fn a_default_answer_that_does_not_fit_is_refused() {
        let with = |default: &str| {
            reasons(
                "ask_human",
                &format!(r#"{{"answer_schema":{{"type":"integer"}},"default":"{default}"}}"#),
            )
        };
        assert_eq!(with("7"), [""; 0]);
        assert!(
            with("seven")[0].contains("the default answer does not fit its schema"),
            "{:?}",
            with("seven")
        );
        assert_eq!(with("[1,2]").len(), 1);
    }
}
