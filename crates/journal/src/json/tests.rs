//! The output equals that of `serde_json`.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Serialize;

use super::to_vec;

/// One of every shape that a journal holds.
#[derive(Clone, Debug, Serialize)]
enum Thing {
    Nothing,
    Text(String),
    Numbers { small: i8, large: u64, huge: i128, maybe: Option<bool>, pair: (u32, char) },
    Many(Vec<Self>),
    Named(BTreeMap<String, Self>),
    Tagged(Tagged),
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tagged {
    Empty,
    Full { text: String, list: Vec<u8> },
}

fn text() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        '"', '\\', '\n', '\t', '\r', '\u{8}', '\u{c}', '\0', '\u{1f}', '\u{7f}', 'é', '😀',
    ]);
    prop::collection::vec(prop_oneof![8 => prop::char::range(' ', '~'), 1 => odd, 1 => any::<char>()], 0..60)
        .prop_map(String::from_iter)
}

fn thing() -> impl Strategy<Value = Thing> {
    let numbers = (any::<i8>(), any::<u64>(), any::<i128>(), any::<Option<bool>>(), any::<(u32, char)>());
    let leaf = prop_oneof![
        Just(Thing::Nothing),
        text().prop_map(Thing::Text),
        numbers.prop_map(|(small, large, huge, maybe, pair)| Thing::Numbers {
            small,
            large,
            huge,
            maybe,
            pair
        }),
        Just(Thing::Tagged(Tagged::Empty)),
        (text(), any::<Vec<u8>>()).prop_map(|(text, list)| Thing::Tagged(Tagged::Full { text, list })),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Thing::Many),
            prop::collection::btree_map(text(), inner, 0..5).prop_map(Thing::Named),
        ]
    })
}

proptest! {
    #[test]
    fn bytes_are_those_of_serde_json(thing in thing()) {
        prop_assert_eq!(to_vec(&thing, 16).unwrap(), serde_json::to_vec(&thing).unwrap());
    }
}

#[test]
fn every_byte_is_escaped_at_every_position() {
    for byte in 0..=0x7f_u8 {
        for place in 0..20 {
            let mut text = "é".repeat(5) + &"x".repeat(20);
            text.insert(10 + place, char::from(byte));
            assert_eq!(
                to_vec(&text, 16).unwrap(),
                serde_json::to_vec(&text).unwrap(),
                "{byte:#x} at {place}"
            );
        }
    }
}

#[test]
fn what_no_journal_holds_is_refused() {
    assert!(to_vec(&1.5_f64, 16).is_err());
    assert!(to_vec(&BTreeMap::from([(1, 2)]), 16).is_err());
}
