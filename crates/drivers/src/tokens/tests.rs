//! Seams and bounds, over texts that are made to break them.

use proptest::prelude::*;

use super::Tokenizer;
use super::seam::Seams;

const BOTH: [Tokenizer; 2] = [Tokenizer::O200k, Tokenizer::Cl100k];

/// Bits of text that the patterns of the encodings treat differently from each other.
fn text() -> impl Strategy<Value = String> {
    let bit = prop_oneof![
        "[a-zA-Z]{1,6}",
        "[0-9]{1,5}",
        "[ \t\r\n/]{1,4}",
        "[!-/:-@\\[-`{-~]{1,6}",
        prop::sample::select(vec![
            "'s",
            "'LL",
            "'",
            "é",
            "e\u{301}",
            "ß",
            "Ж",
            "漢字",
            "ぁ",
            "。",
            "，",
            "\u{3000}",
            "\u{a0}",
            "👍🏽",
            "❤️",
            "½",
            "²",
            "Ⅷ",
            "١٢",
            "ไม่",
            "हिन्दी",
            "\u{2028}",
            "\u{85}",
            "…",
            "—",
            "ſ",
            "\u{0}",
            "<|endoftext|>",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(bit, 0..24).prop_map(|bits| bits.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    /// A text that is cut at every seam has as many tokens as before.
    #[test]
    fn cutting_at_every_seam_changes_no_count(text in text()) {
        for tokenizer in BOTH {
            let sum: u64 = Seams::pieces(&text, 1).map(|piece| tokenizer.count(piece)).sum();
            prop_assert_eq!(sum, tokenizer.count(&text));
        }
    }

    /// A bound holds wherever a text may stand, and bounds add up.
    #[test]
    fn bounds_of_parts_bound_the_whole(a in text(), b in text()) {
        for tokenizer in BOTH {
            let (first, second) = (tokenizer.bound(&a), tokenizer.bound(&b));
            prop_assert!(tokenizer.count(&a) <= first && first <= a.len() as u64);
            for (whole, gaps) in [
                (format!("{a}\n{b}"), 1),
                (format!("{a}\n\n{b}"), 2),
                (format!("]\n{a}\n{b}\n["), 5),
                (format!("\n{a}\n\n{b}\n"), 4),
            ] {
                prop_assert!(tokenizer.count(&whole) <= first + second + gaps, "{:?}", whole);
            }
        }
    }
}

/// Why there are bounds: the counts of two parts are none for the whole, not even with the line break between them.
#[test]
fn counts_of_parts_do_not_bound_the_whole() {
    let text = "\")->";
    let whole = Tokenizer::O200k.count(&format!("{text}\n"));
    assert!(whole > Tokenizer::O200k.count(text) + 1);
    assert!(whole <= Tokenizer::O200k.bound(text) + 1);
}
