//! Which answers match, which schemas are refused, and that every check ends.

use proptest::prelude::*;

use super::*;

const PERSON: &str = r##"{
  "type": "object", "required": ["name"], "additionalProperties": false,
  "properties": {
    "name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}, "mood": {"enum": ["glad", "sad"]},
    "children": {"type": "array", "items": {"$ref": "#"}}
  }
}"##;

/// How an answer fails to match, or the part of it that is kept.
fn described(schema: &str, answer: &str) -> String {
    match fit(schema, answer) {
        Ok(bare) => format!("fits: {bare}"),
        Err(mismatch) => format!("{:?}: {}", mismatch.kind, mismatch.describe()),
    }
}

#[test]
fn every_kind_of_mismatch_is_reported_with_its_place() {
    let answers = [
        r#"{"name": "Ann", "age": 1.0e1}"#,
        r#"["Ann"]"#,
        r#"{"age": 5}"#,
        r#"{"name": "Ann", "nmae": "Ann"}"#,
        r#"{"name": "Ann", "mood": "angry"}"#,
        r#"{"name": "Ann", "children": [{"name": "Bo"}, {"name": 7}]}"#,
        r#"{"name": 1, "age": -1, "mood": 1, "children": 1}"#,
        "Ann is 5.",
        r#"{"name": "Ann"} as you asked"#,
        "",
        r#"{"name": "Ann"#,
    ];
    let all: Vec<String> = answers.iter().map(|answer| described(PERSON, answer)).collect();
    insta::assert_snapshot!(all.join("\n"), @r#"
    fits: {"name": "Ann", "age": 1.0e1}
    Value: value is not of type "object"
    Value: "name" is a required property
    Value: Additional properties are not allowed ('nmae' was unexpected)
    Value: at /mood: value is not one of "glad" or "sad"
    Value: at /children/1/name: value is not of type "string"
    Value: at /name: value is not of type "string"; at /age: value is less than the minimum of 0; at /mood: value is not one of "glad" or "sad"; and 1 more
    NotJson: expected one JSON value and nothing else, but it begins with other text
    NotJson: expected one JSON value and nothing else, but more follows the value, from line 1, column 17 on
    NotJson: expected one JSON value and nothing else, but it is empty
    NotJson: expected one JSON value and nothing else, but it ends too early, at line 1, column 13
    "#);
}

/// Models put JSON into a fence; its content is kept unchanged.
#[test]
fn one_fence_around_the_value_is_taken_off() {
    let number = r#"{"type": "number"}"#;
    for (answer, bare) in [
        ("```json\n1.50\n```", "1.50"),
        ("```\n1e2\n```\n", "1e2"),
        ("  \n```JSON\r\n 1.0 \r\n```  ", "1.0"),
        (" 5 ", "5"),
    ] {
        assert_eq!(fit(number, answer), Ok(bare), "{answer:?}");
    }
    let fences =
        ["Here:\n```json\n5\n```", "```json\n5\n```\n```json\n6\n```", "```json 5```", "``` a b\n5\n```"];
    for answer in fences {
        assert_eq!(fit(number, answer).unwrap_err().kind, MismatchKind::NotJson, "{answer:?}");
    }
}

#[test]
fn what_is_no_schema_or_leads_out_of_it_is_refused_with_its_place() {
    let schemas = [
        r#"{"type": "strin"}"#,
        r#"{"properties": {"a": {"minimum": "x"}}}"#,
        r#"{"$ref": "https://example.com/person.json"}"#,
        r#"{"items": {"$ref": "file:///etc/passwd"}}"#,
        r##"{"properties": {"a": {"$ref": "#/$defs/b"}}}"##,
        r##"{"$ref": "#"}"##,
        r##"{"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}"##,
        r#"{"$schema": "https://example.com/meta"}"#,
        r#"{"properties": {"a": {"$id": "https://example.com/a"}}}"#,
        r#"{"unevaluatedProperties": false}"#,
        r#"{"pattern": "(?=a)b"}"#,
        r#"{"pattern": "(\\w{1000}){1000}"}"#,
        r#"{"type": 5}"#,
    ];
    let all: Vec<String> = schemas.iter().map(|schema| described(schema, "5")).collect();
    insta::assert_snapshot!(all.join("\n"), @r#"
    Schema: at /type: value is not one of "array", "boolean" or 5 other candidates, and value is not of type "array"
    Schema: at /properties/a/minimum: value is not of type "number"
    Schema: at /$ref: expected a reference inside the schema, such as `#/$defs/name`: nothing is fetched
    Schema: at /items/$ref: expected a reference inside the schema, such as `#/$defs/name`: nothing is fetched
    Schema: at /properties/a/$ref: expected a reference to a part of this schema: there is none
    Schema: a part refers to itself and says nothing of the value: put something between
    Schema: a part refers to itself and says nothing of the value: put something between
    Schema: Unknown meta-schema: 'https://example.com/meta'. Custom meta-schemas must be registered in the registry before use
    Schema: at /properties/a/$id: an `$id` inside a schema makes another of it: delete it
    Schema: at /unevaluatedProperties: expected `additionalProperties`: `unevaluatedProperties` is not supported here
    Schema: at /pattern: value is not a "regex"
    Schema: at /pattern: value is not a "regex"
    Schema: at /type: value is not one of "array", "boolean" or 5 other candidates, and value is not of type "array"
    "#);
    for schema in schemas {
        assert_eq!(fit(schema, "5").unwrap_err().kind, MismatchKind::Schema, "{schema}");
        assert!(check(schema).is_err(), "{schema}");
    }
    assert_eq!(check(PERSON), Ok(()));
}

/// Schemas and answers that would take forever are stopped at a bound.
#[test]
fn what_would_take_for_ever_to_check_is_too_much() {
    let double = |at: usize| {
        format!(r##""d{at}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##, at + 1)
    };
    let doubles: Vec<String> = (0..40).map(double).chain([r#""d40":{}"#.to_owned()]).collect();
    let doubling = format!(r##"{{"$defs":{{{}}},"$ref":"#/$defs/d0"}}"##, doubles.join(","));
    let nesting = r##"{"$defs":{"t":{"allOf":[{"properties":{"a":{"$ref":"#/$defs/t"}}},{"properties":{"a":{"$ref":"#/$defs/t"}}}]}},"$ref":"#/$defs/t"}"##;
    let branches = format!(r#"{{"anyOf":[{}]}}"#, vec![r#"{"type":"null"}"#; 1_000].join(","));
    let deep = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let (list, text) =
        (format!("[{}]", vec!["1"; 10_000].join(",")), format!("\"{}!\"", "a".repeat(200_000)));
    for (schema, answer) in [
        (doubling.as_str(), "1"),
        (nesting, deep(60).as_str()),
        (&branches, &list),
        (r#"{"pattern":"^(([a-z])+.)+[A-Z]([a-z])+([a-z])+$"}"#, &text),
        ("{}", &format!("\"{}\"", "a".repeat(limit::CHECKED_BYTES_MAX))),
    ] {
        assert_eq!(fit(schema, answer).unwrap_err().kind, MismatchKind::TooMuch, "{schema}");
    }
    // Realistic schemas are far from the bounds.
    let tree = r##"{"type":["object","integer"],"properties":{"a":{"$ref":"#"}}}"##;
    assert!(fit(tree, &deep(100)).is_ok());
    let words = format!("[{}]", vec![r#""a word""#; 10_000].join(","));
    assert!(fit(r#"{"items":{"type":"string","pattern":"^[a-z ]+$"},"uniqueItems":false}"#, &words).is_ok());
}

/// A pattern with exponential backtracking elsewhere takes linear time here.
#[test]
fn a_pattern_never_hangs() {
    let text = format!("\"{}!\"", "a".repeat(60_000));
    assert_eq!(fit(r#"{"pattern":"^(a+)+$"}"#, &text).unwrap_err().kind, MismatchKind::Value);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every answer matches or does not: nothing panics, and what matches is JSON from the answer.
    #[test]
    fn any_answer_matches_or_reports_why_not(answer in prop_oneof![
        ".{0,80}",
        "[\\[\\]{}\",:0-9a-z `\n-]{0,80}",
        r#"(```json\n)?\{"name": ?("[a-z]{0,5}"|[0-9]{1,3})(, ?"age": ?-?[0-9]{1,3}(\.[0-9])?)?\}(\n```)?"#,
    ]) {
        match fit(PERSON, &answer) {
            Ok(bare) => {
                prop_assert!(answer.contains(bare));
                prop_assert!(serde_json::from_str::<Value>(bare).is_ok_and(|value| value.get("name").is_some()));
            }
            Err(mismatch) => prop_assert!(!mismatch.wrong.is_empty() && !mismatch.describe().is_empty()),
        }
    }

    /// Every schema is accepted or refused, and checking an answer ends.
    #[test]
    fn any_schema_is_one_or_is_refused(
        word in "(type|items|properties|\\$ref|allOf|anyOf|pattern|enum|if|\\$defs|required|not|minimum|const)",
        inner in "(true|5|\"#\"|\"string\"|\\[\\]|\\{\\}|\\[\\{\\}\\]|\\{\"a\": ?\\{\"\\$ref\": ?\"#\"\\}\\}|\"[(a]\"|null)",
        answer in "(5|\"a\"|\\{\"a\": ?\\{\\}\\}|\\[1\\])",
    ) {
        let schema = format!(r#"{{"{word}": {inner}}}"#);
        let checked = check(&schema);
        match fit(&schema, &answer) {
            Err(mismatch) if mismatch.kind == MismatchKind::Schema => prop_assert!(checked.is_err()),
            Ok(_) | Err(_) => prop_assert!(checked.is_ok(), "{schema}: {checked:?}"),
        }
    }
}
