//! Cutting: people read a step, so no part of it is long. A cut text says so.

use serde_json::{Map, Value};

/// Most bytes of an observation: a page or two.
pub(super) const OBSERVATION_BYTES_MAX: usize = 4_096;
/// Most bytes of an error, and of what a model said before it called a tool.
pub(super) const REMARK_BYTES_MAX: usize = 1_024;
/// Arguments up to this size stay as they are.
const ARGS_BYTES_MAX: usize = 2_048;
/// Most bytes of one value, and of one name, of arguments that are cut.
const VALUE_BYTES_MAX: usize = 200;
/// Most values of arguments that are cut.
const VALUES_MAX: usize = 16;

/// A text of at most `bytes_max`, and whether something is missing.
pub(super) fn cut(text: &str, bytes_max: usize) -> (String, bool) {
    if text.len() <= bytes_max {
        return (text.to_owned(), false);
    }
    (format!("{}…", &text[..text.floor_char_boundary(bytes_max)]), true)
}

/// A short text whose rest does not matter.
pub(super) fn remark(text: &str) -> String {
    cut(text, REMARK_BYTES_MAX).0
}

/// A call's arguments as a model wrote them, with long parts cut. Anything except an object goes under `args`.
pub(super) fn args(text: &str) -> Map<String, Value> {
    if text.trim().is_empty() {
        return Map::new();
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(args)) if text.len() <= ARGS_BYTES_MAX => args,
        Ok(Value::Object(args)) => values(args),
        Ok(_) | Err(_) => Map::from_iter([("args".to_owned(), Value::String(cut(text, VALUE_BYTES_MAX).0))]),
    }
}

fn values(args: Map<String, Value>) -> Map<String, Value> {
    let more = args.len().saturating_sub(VALUES_MAX);
    let cut =
        args.into_iter().take(VALUES_MAX).map(|(name, value)| (cut(&name, VALUE_BYTES_MAX).0, one(value)));
    let more = (more > 0).then(|| ("…".to_owned(), Value::String(format!("{more} more"))));
    cut.chain(more).collect()
}

/// A value if it is short, or else its beginning.
fn one(value: Value) -> Value {
    let text = match &value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    if text.len() <= VALUE_BYTES_MAX {
        return value;
    }
    let (bytes, beginning) = (text.len(), cut(&text, VALUE_BYTES_MAX).0);
    Value::String(format!("{beginning} ({bytes} bytes)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters_and_say_so() {
        assert_eq!(cut("short", 5), ("short".to_owned(), false));
        assert_eq!(cut("äöü", 3), ("ä…".to_owned(), true));
    }

    #[test]
    fn short_arguments_stay_as_they_are() {
        assert_eq!(
            Value::Object(args(r#"{"a": [1, {"b": null}], "c": "d"}"#)).to_string(),
            r#"{"a":[1,{"b":null}],"c":"d"}"#
        );
        assert_eq!(args(" "), Map::new());
    }

    #[test]
    fn what_is_no_object_is_kept_as_text() {
        assert_eq!(args("[1]")["args"], "[1]");
        assert_eq!(args(r#"{"path":"#)["args"], r#"{"path":"#);
        let deep = "[".repeat(10_000);
        assert_eq!(args(&deep)["args"].as_str().unwrap().len(), VALUE_BYTES_MAX + "…".len());
    }

    #[test]
    fn long_arguments_keep_their_names_and_the_beginnings_of_their_values() {
        let text =
            format!(r#"{{"path":"a.txt","text":"{}","lines":[{}1]}}"#, "x".repeat(5_000), "1,".repeat(500));
        let cut = args(&text);
        assert_eq!(cut["path"], "a.txt");
        assert_eq!(cut["text"], format!("{}… (5000 bytes)", "x".repeat(200)));
        assert!(cut["lines"].as_str().unwrap().ends_with("… (1003 bytes)"));
        let many: Vec<String> = (0..300).map(|n| format!(r#""key{n}":1{n}000"#)).collect();
        let cut = args(&format!("{{{}}}", many.join(",")));
        assert_eq!((cut.len(), &cut["…"]), (17, &Value::from("284 more")));
    }
}
