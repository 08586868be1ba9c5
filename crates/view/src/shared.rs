//! The values that agents share, for programs.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use spinney_kernel::context::{SharedValue, SharedValues};
use spinney_kernel::primitives::{Actor, ValueName};

/// Who wrote a value. `person` is not an agent's id, and has always been the word here.
#[must_use]
pub fn author(by: &Actor) -> String {
    if *by == Actor::PERSON { "person".to_owned() } else { by.to_string() }
}

/// One of the values, with its whole JSON. In an ended tree no agent can read them any more.
#[must_use]
pub fn value_json(values: &SharedValues, name: &ValueName, value: &SharedValue, json: String) -> Value {
    let content = RawValue::from_string(json.clone()).ok().and_then(|raw| serde_json::to_value(raw).ok());
    json!({
        "key": name,
        "version": value.version,
        "by": author(&value.by),
        "at": value.at,
        "bytes": value.bytes(),
        "cleared": values.is_cleared(),
        "value": content.unwrap_or(Value::String(json)),
    })
}
