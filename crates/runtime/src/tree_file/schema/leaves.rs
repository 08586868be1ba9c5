//! Values that take several forms, by the names of their types: their part of the schema, and an example.

use serde_json::{Value, json};
use spinney_kernel::definition::KnownProgram;

use super::super::keys::WrittenLimits;
use super::super::redact::WrittenRedaction;
use super::pipeline::PIPELINE;

/// The part of the schema, and an example, of a type. An optional value is written like one that is not.
pub(super) fn leaf(type_name: &str) -> Option<(Value, Value)> {
    let plain = type_name.strip_prefix("core::option::Option<").and_then(|name| name.strip_suffix('>'));
    let name = plain.unwrap_or(type_name);
    let last = name.rsplit("::").next().unwrap_or(name);
    let found = match (name.starts_with("spinney"), last) {
        (true, "Usd") => (
            json!({ "type": ["number", "string"], "minimum": 0, "pattern": r"^\$?([0-9]+\.?[0-9]{0,9}|\.[0-9]{1,9})$" }),
            json!(1),
        ),
        (true, "TimeSpan") => (time(), json!("5m")),
        (true, "SpanOrOff") => (json!({ "anyOf": [{ "const": "off" }, time()] }), json!("off")),
        (true, "Timeout") => (timeout(), json!("5m")),
        (true, "CacheTime") => (json!({ "enum": ["off", "5m", "1h"] }), json!("5m")),
        (true, "InputValue") => (json!({}), json!("a")),
        (true, "PipelineKeys") => (json!({ "$ref": format!("#/$defs/{PIPELINE}") }), json!({})),
        (true, "Percent") => (
            json!({ "type": ["integer", "string"], "minimum": 0, "maximum": 90, "pattern": "^[0-9]+%$" }),
            json!(10),
        ),
        (true, "Count") => (json!({ "type": "integer", "minimum": 0 }), json!(1)),
        (true, "ByteSize") => (
            json!({ "type": ["integer", "string"], "minimum": 1, "pattern": "^[0-9]+ ?([kKMGT]?B|[KMGT]iB)$" }),
            json!("1GiB"),
        ),
        (true, "WrittenBox") => {
            (json!({ "anyOf": [{ "const": "none" }, { "$ref": "#/$defs/BoxKeys" }] }), json!("none"))
        }
        (true, "WrittenRedaction") => (
            json!({ "anyOf": [{ "const": WrittenRedaction::JOURNAL }, { "$ref": "#/$defs/RedactionKeys" }] }),
            json!(WrittenRedaction::JOURNAL),
        ),
        (true, "WrittenLimits") => (
            json!({ "anyOf": [{ "const": WrittenLimits::SEED_001 }, { "$ref": "#/$defs/AgentLimitKeys" }] }),
            json!({}),
        ),
        (true, "WrittenProgram") => (program(), json!("claude")),
        (true, "WrittenPrice") => {
            (json!({ "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/PriceKeys" }] }), json!("openai/a"))
        }
        // The only fields that are read by a function count something.
        (_, name) if name.contains("__DeserializeWith") => {
            (json!({ "type": "integer", "minimum": 0 }), json!(1))
        }
        (false, "Number") => (json!({ "type": "number" }), json!(1)),
        // A schema inside the file: a map, or JSON in a text.
        (false, "Value") => (json!({ "type": ["object", "string"] }), json!({})),
        _ => return None,
    };
    Some(found)
}

pub(super) fn time() -> Value {
    json!({ "type": ["string", "integer"], "pattern": "^[0-9]+(ms|s|m|h|d)$", "minimum": 1 })
}

/// The name of a known program, or a command with one place.
fn program() -> Value {
    let names = KnownProgram::ALL.map(KnownProgram::as_str);
    let words = json!({ "type": "array", "items": { "type": "string" }, "minItems": 2 });
    json!({ "anyOf": [{ "enum": names }, words] })
}

/// A time, or one that keeps running while the tree waits for a person.
pub(super) fn timeout() -> Value {
    let wall = json!({
        "type": "object",
        "properties": { "wall": time() },
        "required": ["wall"],
        "additionalProperties": false,
    });
    json!({ "anyOf": [time(), wall] })
}
