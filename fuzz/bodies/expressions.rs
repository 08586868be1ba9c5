//! Any text as a condition, a value and a template. Nothing panics, and what has a value stays within its limits.

use serde_json::{Map, Value, json};
use spinney_kernel::definition::{Condition, Expression, Template};
use spinney_kernel::primitives::limit;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(source) = std::str::from_utf8(bytes) else { return };
    let values = values();
    if let Ok(expression) = Expression::parse(source) {
        if let Ok(value) = expression.value(&values) {
            assert!(value.to_string().len() <= limit::EXPRESSION_VALUE_BYTES_MAX);
        }
        let condition = Condition::parse(source).expect("the same language");
        let _holds = condition.holds(&values);
        let json = serde_json::to_string(&condition).expect("a text");
        assert_eq!(serde_json::from_str::<Condition>(&json).expect("its own source"), condition);
    }
    match Template::parse(source) {
        Ok(template) => {
            if let Ok(text) = template.render(&values) {
                assert!(text.len() <= limit::TEXT_BYTES_MAX);
            }
        }
        Err(error) => assert!(source.is_char_boundary(error.at)),
    }
}

fn values() -> Map<String, Value> {
    let values = json!({
        "n": 7, "f": 2.5, "big": u64::MAX, "s": "straße", "long": "x".repeat(50_000), "y": true, "nothing": null,
        "xs": [1, "a", 2.5, null, [true]], "o": {"a": {"b": [1, 2]}},
    });
    values.as_object().cloned().unwrap_or_default()
}
