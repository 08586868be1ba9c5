//! The schema of a tool's arguments: from their type to compact JSON text, the same in every build, and a one-line
//! form for a model that got them wrong.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::RestrictFormats;
use serde_json::{Map, Value};

/// Most levels of a type that an error shows.
const TOLD_DEPTH_MAX: usize = 6;

/// Keywords that combine schemas: the fields beside them are not all.
const JOINS: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];

/// The schema of a type, and the type's description.
///
/// Types that are used twice are in `$defs`, so it does not grow exponentially. A schema above the journal's
/// limit is refused with its size when a tree starts.
pub(super) fn for_type<A: JsonSchema>() -> (String, String) {
    // Formats that only Rust knows mean nothing to a model.
    let settings = SchemaSettings::draft2020_12().with_transform(RestrictFormats::default());
    let mut schema = settings.into_generator().into_root_schema_for::<A>();
    let root = schema.ensure_object();
    root.shift_remove("$schema");
    let name = root.shift_remove("title");
    let description = root.shift_remove("description");
    let is_object = root.get("type").is_none_or(|kind| kind == "object");
    assert!(is_object, "the arguments of a tool are a JSON object: {name:?} is not one; put it in a struct");
    root.entry("type").or_insert_with(|| "object".into());
    let mut schema = schema.to_value();
    if !any(&schema, &|object| {
        object.contains_key("properties") && JOINS.iter().any(|join| object.contains_key(*join))
    }) {
        close(&mut schema);
    }
    let description = description.and_then(|text| text.as_str().map(str::to_owned));
    (schema.to_string(), description.unwrap_or_default())
}

/// Closes every object with named fields, so models add none. Only where no object combines several schemas,
/// each of which would forbid the fields of the others.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.values_mut().for_each(close);
            let is_struct = object.get("type").is_some_and(|kind| kind == "object")
                && object.get("properties").is_some_and(Value::is_object);
            if is_struct {
                object.entry("additionalProperties").or_insert(false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn any(schema: &Value, is: &impl Fn(&Map<String, Value>) -> bool) -> bool {
    match schema {
        Value::Object(object) => is(object) || object.values().any(|inner| any(inner, is)),
        Value::Array(items) => items.iter().any(|inner| any(inner, is)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// What a schema accepts, in a line; `None` if it is invalid.
pub(super) fn described(schema: &str) -> Option<String> {
    let root: Value = serde_json::from_str(schema).ok()?;
    Some(shape(&root, &root, TOLD_DEPTH_MAX))
}

fn shape(schema: &Value, root: &Value, depth: usize) -> String {
    let Some(depth) = depth.checked_sub(1) else { return "…".to_owned() };
    let inner = |schema: &Value| shape(schema, root, depth);
    let of = |key: &str| schema.get(key);
    if let Some(target) =
        of("$ref").and_then(Value::as_str).and_then(|path| root.pointer(path.strip_prefix('#')?))
    {
        return inner(target);
    }
    if let Some(value) = of("const") {
        return value.to_string();
    }
    let choices = ["enum", "oneOf", "anyOf"].iter().find_map(|key| Some((*key, of(key)?.as_array()?)));
    if let Some((key, choices)) = choices {
        let each = |choice: &Value| if key == "enum" { choice.to_string() } else { inner(choice) };
        return choices.iter().map(each).collect::<Vec<_>>().join(" | ");
    }
    if let Some(fields) = of("properties").and_then(Value::as_object) {
        let required = of("required").and_then(Value::as_array);
        let field = |(name, schema): (&String, &Value)| {
            let is_required = required.is_some_and(|names| names.iter().any(|required| required == name));
            format!("{name}{}: {}", if is_required { "" } else { "?" }, inner(schema))
        };
        return format!("{{ {} }}", fields.iter().map(field).collect::<Vec<_>>().join(", "));
    }
    if let Some(items) = of("items") {
        return format!("[{}]", inner(items));
    }
    match of("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            "anything".to_owned()
        }
    }
}
