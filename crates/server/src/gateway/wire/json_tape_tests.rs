//! The tape against `serde_json`: the same texts are JSON, and every value is where the tape says.

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::bounds::REQUEST_VALUES_MAX;
use super::json_tape::{JsonFault, JsonKind, JsonNode, JsonTape};

/// Texts that are nearly JSON: its own characters in any order, and pieces of it.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        "[\\[\\]{},:\"0-9eE+. \\-\\\\tfnul]{1,4}",
        prop::sample::select(vec![
            "{}",
            "[]",
            "null",
            "true",
            "false",
            "\"a\"",
            "\"\\u00e9\"",
            "\"\\ud800\"",
            "\"\\x\"",
            "-0",
            "01",
            "1.",
            "1e5",
            "1E+400",
            "-",
            "{\"a\":1}",
            "[1,2]",
            ",",
            ":",
            "\n",
            "\t",
            "\u{b}",
            "\u{feff}",
            "é",
            "\"\n\"",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(scrap, 0..8).prop_map(|scraps| scraps.concat())
}

fn value_of(node: JsonNode<'_>) -> Value {
    match node.kind() {
        JsonKind::Object => {
            let member = |member: super::json_tape::JsonMember<'_>| {
                (member.key.text().unwrap_or_default().into_owned(), value_of(member.value))
            };
            Value::Object(node.members().map(member).collect())
        }
        JsonKind::Array => Value::Array(node.items().map(value_of).collect()),
        JsonKind::Text => Value::String(node.text().unwrap_or_default().into_owned()),
        JsonKind::Number => serde_json::from_str(node.raw()).unwrap(),
        JsonKind::True => Value::Bool(true),
        JsonKind::False => Value::Bool(false),
        JsonKind::Null => Value::Null,
    }
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn the_same_texts_are_json(text in scraps()) {
        let known = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        prop_assert_eq!(JsonTape::read(&text).is_ok(), known, "{}", text);
    }

    #[test]
    fn every_value_is_where_the_tape_says(json in json(), is_pretty in any::<bool>()) {
        let text = if is_pretty { serde_json::to_string_pretty(&json) } else { serde_json::to_string(&json) };
        let text = text.unwrap();
        // What is written of a number is not always what is read again.
        let json: Value = serde_json::from_str(&text).unwrap();
        let tape = JsonTape::read(&text).unwrap();
        prop_assert_eq!(value_of(tape.root()), json);
        for node in tape.root().with_descendants() {
            let own: Value = serde_json::from_str(node.raw()).unwrap();
            prop_assert_eq!(value_of(node), own);
        }
    }
}

#[test]
fn a_member_that_is_there_twice_is_found_out() {
    let tape = JsonTape::read(r#"{"a":1,"b":2,"\u0061":3}"#).unwrap();
    assert!(tape.root().member("a").is_err());
    assert_eq!(tape.root().member("b").unwrap().unwrap().raw(), "2");
    assert!(tape.root().member("c").unwrap().is_none());
}

#[test]
fn deep_nesting_takes_no_stack() {
    let deep = "[".repeat(400_000) + &"]".repeat(400_000);
    let tape = JsonTape::read(&deep).unwrap();
    assert_eq!(tape.root().with_descendants().count(), 400_000);
}

#[test]
fn too_many_values_are_refused() {
    let many = format!("[{}0]", "0,".repeat(REQUEST_VALUES_MAX));
    assert_eq!(JsonTape::read(&many).unwrap_err(), JsonFault::TooManyValues);
}

proptest! {
    /// Scanning eight bytes at once finds the same end as scanning byte by byte, whatever the text and its position.
    #[test]
    fn the_end_of_a_text_is_found_wherever_it_is(before in "[a-zäß\u{1}-\u{ff}]{0,40}", after in "[ -~\\n]{0,24}") {
        let text = format!("{}{after}", before.replace(['"', '\\'], "x"));
        let bytes = text.as_bytes();
        for at in 0..=bytes.len() {
            let slowly = bytes[at..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count();
            prop_assert_eq!(super::json_tape::plain_end(bytes, at), at + slowly);
        }
    }
}
