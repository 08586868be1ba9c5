//! Random JSON as text: odd white space, escapes of any kind, numbers of any shape, duplicate keys, deep nesting.

use proptest::prelude::*;

pub(super) fn space() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just(String::new()), 1 => "[ \t\r\n]{1,3}"]
}

/// A text in JSON, including escapes that are not characters.
pub(super) fn quoted() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ !#-\\[\\]-~]{1,6}",
        r#"\\["\\/bfnrt]"#,
        r"\\u[0-9a-fA-F]{4}",
        prop::sample::select(vec!["é", "漢字", "👍", "\u{2028}", "\u{7f}", "\\ud83d\\ude00"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn number() -> impl Strategy<Value = String> {
    r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?"
}

/// Any value.
pub(super) fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        number(),
        quoted(),
        prop::sample::select(vec!["null", "true", "false", "{}", "[]"]).prop_map(str::to_owned),
        (1_usize..2_000).prop_map(|depth| "[".repeat(depth) + &"]".repeat(depth)),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let item =
            (space(), inner.clone(), space()).prop_map(|(before, item, after)| before + &item + &after);
        let member = (space(), quoted(), space(), inner, space())
            .prop_map(|(a, key, b, value, c)| format!("{a}{key}:{b}{value}{c}"));
        prop_oneof![
            prop::collection::vec(item, 1..6).prop_map(|items| format!("[{}]", items.join(","))),
            // Some members are there twice.
            (prop::collection::vec(member, 1..6), any::<bool>()).prop_map(|(mut members, is_twice)| {
                if is_twice {
                    members.push(members[0].clone());
                }
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// The name of a member as a program may write it: plain, or with one letter escaped.
pub(super) fn name(name: &'static str) -> impl Strategy<Value = String> {
    let letters = 0..name.len();
    prop_oneof![
        3 => Just(format!("\"{name}\"")),
        1 => letters.prop_map(move |at| {
            let letter = name.as_bytes()[at];
            format!("\"{}\\u{letter:04x}{}\"", &name[..at], &name[at + 1..])
        }),
    ]
}
