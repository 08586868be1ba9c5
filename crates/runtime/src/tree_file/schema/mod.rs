//! The JSON Schema of tree files, for editors. It is made from the types that read a file, so it names exactly their
//! keys; what only the reader checks (names that exist, bounds) is not in it.

mod descriptions;
mod leaves;
mod pipeline;
mod trace;

use serde_json::{Map, Value, json};

use spinney_kernel::definition::PriceKeys;

use super::keys::{AgentLimitKeys, BoxKeys, TreeKeys};
use super::redact::RedactionKeys;
use descriptions::description;
use trace::{Fields, Shape, Traced, Untraced, Word, trace};

/// The schema that is made from the types.
pub(super) fn schema() -> Value {
    match made() {
        Ok(schema) => schema,
        Err(untraced) => unreachable!("the keys of a tree file can be traced: {untraced}"),
    }
}

fn made() -> Result<Value, Untraced> {
    let (_, mut traced) = trace::<TreeKeys>()?;
    let (_, price) = trace::<PriceKeys>()?;
    traced.structs.extend(price.structs);
    let (_, boxes) = trace::<BoxKeys>()?;
    traced.structs.extend(boxes.structs);
    traced.enums.extend(boxes.enums);
    let (_, redaction) = trace::<RedactionKeys>()?;
    traced.structs.extend(redaction.structs);
    let (_, limits) = trace::<AgentLimitKeys>()?;
    traced.structs.extend(limits.structs);
    let tree = traced.structs.remove("TreeKeys").unwrap_or_default();
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!("Spinney tree file"));
    schema.extend(object("TreeKeys", &tree));
    let mut all = definitions(&traced);
    all.extend(pipeline::definitions());
    schema.insert("$defs".to_owned(), Value::Object(all));
    Ok(Value::Object(schema))
}

fn definitions(traced: &Traced) -> Map<String, Value> {
    let structs = traced.structs.iter().map(|(name, fields)| (*name, Value::Object(object(name, fields))));
    let enums = traced.enums.iter().map(|(name, words)| (*name, one_of(words)));
    let mut all: Vec<(&str, Value)> = structs.chain(enums).collect();
    all.sort_by_key(|(name, _)| *name);
    all.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn object(name: &str, fields: &Fields) -> Map<String, Value> {
    let property = |(field, shape): &(&'static str, Shape)| {
        let mut schema = shape.schema();
        if let (Some(object), Some(text)) = (schema.as_object_mut(), description(name, field)) {
            object.insert("description".to_owned(), json!(text));
        }
        ((*field).to_owned(), schema)
    };
    let properties: Map<String, Value> = fields.shapes.iter().map(property).collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Value::Object(properties));
    if !fields.required.is_empty() {
        object.insert("required".to_owned(), json!(fields.required));
    }
    object.insert("additionalProperties".to_owned(), json!(false));
    object
}

/// A word is a text; one with a value is a map with one key.
fn one_of(words: &[Word]) -> Value {
    let plain: Vec<&str> = words.iter().filter(|word| word.value.is_none()).map(|word| word.name).collect();
    let plain = (!plain.is_empty()).then(|| json!({ "enum": plain }));
    let valued = words.iter().filter_map(|word| {
        let mut properties = Map::new();
        properties.insert(word.name.to_owned(), word.value.as_ref()?.schema());
        Some(json!({
            "type": "object",
            "properties": properties,
            "required": [word.name],
            "additionalProperties": false,
        }))
    });
    let mut forms: Vec<Value> = plain.into_iter().chain(valued).collect();
    if forms.len() == 1 { forms.swap_remove(0) } else { json!({ "anyOf": forms }) }
}

impl Shape {
    fn schema(&self) -> Value {
        match self {
            Self::Leaf(schema) => schema.clone(),
            Self::Bool => json!({ "type": "boolean" }),
            Self::Whole => json!({ "type": "integer" }),
            Self::Text => json!({ "type": "string" }),
            Self::List(item) => json!({ "type": "array", "items": item.schema() }),
            Self::Map(value) => json!({ "type": "object", "additionalProperties": value.schema() }),
            Self::Named(name) => json!({ "$ref": format!("#/$defs/{name}") }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_description() {
        let schema = schema();
        let definitions = schema["$defs"].as_object().expect("definitions");
        let tree = std::iter::once(("TreeKeys", &schema));
        let all = tree.chain(definitions.iter().map(|(name, schema)| (name.as_str(), schema)));
        let mut missing = Vec::new();
        for (name, schema) in all {
            for (key, property) in schema["properties"].as_object().into_iter().flatten() {
                if property["description"].is_null() {
                    missing.push(format!("{name}.{key}"));
                }
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
    }
}
