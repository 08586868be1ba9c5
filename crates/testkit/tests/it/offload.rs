//! Previews of long outputs: bounded, true parts of the whole, and cut at safe positions.

use proptest::collection::vec;
use proptest::prelude::*;
use spinney_kernel::context::offload::{Offloads, Whole, name, preview, shown};
use spinney_kernel::primitives::{BlobHash, BlobRef, Body, limit};

fn check_preview(text: &str) {
    let is_long = text.chars().count() > limit::OFFLOAD_CHARS || text.lines().count() > limit::OFFLOAD_LINES;
    assert_eq!(preview(text).is_some(), is_long);
    let Some((head, tail)) = preview(text) else { return };
    assert!(text.starts_with(head) && text.ends_with(tail));
    assert!(head.len() + tail.len() < text.len(), "they overlap");
    assert!(head.len() <= limit::OFFLOAD_HEAD_BYTES && tail.len() <= limit::OFFLOAD_TAIL_BYTES);
    assert!(head.lines().count() <= limit::OFFLOAD_HEAD_LINES);
    assert!(tail.lines().count() <= limit::OFFLOAD_TAIL_LINES);
    // A line break of two characters is in one part or in none.
    assert!(!(head.ends_with('\r') && text[head.len()..].starts_with('\n')));
    assert!(!(tail.starts_with('\n') && text[..text.len() - tail.len()].ends_with('\r')));
    // As much as fits: another character or line would be too much.
    let is_full = |part: &str, bytes: usize, lines: usize| {
        part.len() + 5 > bytes || part.matches('\n').count() + 1 >= lines
    };
    assert!(is_full(head, limit::OFFLOAD_HEAD_BYTES, limit::OFFLOAD_HEAD_LINES), "{head:?}");
    assert!(is_full(tail, limit::OFFLOAD_TAIL_BYTES, limit::OFFLOAD_TAIL_LINES), "{tail:?}");
}

fn piece() -> impl Strategy<Value = String> {
    let word =
        proptest::sample::select(vec!["a", "\n", "\r\n", "\r", "é", "漢", "🌲", "e\u{301}", " ", "\0"]);
    (word, 1_usize..1_500).prop_map(|(word, times)| word.repeat(times))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_preview_is_bounded_and_made_of_the_whole(pieces in vec(piece(), 0..8)) {
        check_preview(&pieces.concat());
    }

    #[test]
    fn lines_of_any_length_give_a_preview_within_its_bounds(
        lines in vec((0_usize..120, any::<bool>()), 0..120),
    ) {
        let line = |(bytes, is_crlf): &(usize, bool)| "x".repeat(*bytes) + if *is_crlf { "\r\n" } else { "\n" };
        check_preview(&lines.iter().map(line).collect::<String>());
    }
}

#[test]
fn what_is_just_short_enough_is_shown_whole() {
    for text in ["x".repeat(2_048), "漢".repeat(2_048), "x\n".repeat(50), "\r\n".repeat(50), String::new()] {
        assert_eq!(preview(&text), None);
        check_preview(&text);
    }
    for text in ["x".repeat(2_049), "漢".repeat(2_049), "x\n".repeat(51), "\n".repeat(50) + "x"] {
        check_preview(&text);
        assert!(preview(&text).is_some());
    }
}

#[test]
fn a_megabyte_on_one_line_has_a_head_and_a_tail() {
    let text = "x".repeat(1_000_000);
    assert_eq!(preview(&text), Some((&text[..1_024], &text[..512])));
}

#[test]
fn a_long_listing_shows_its_first_and_its_last_lines() {
    let text: String = (1..=60).map(|n| format!("line {n}\r\n")).collect();
    let (head, tail) = preview(&text).unwrap();
    assert!(head.starts_with("line 1\r\n") && head.ends_with("line 20\r\n"), "{head:?}");
    assert!(tail.starts_with("line 51\r\n") && tail.ends_with("line 60\r\n"), "{tail:?}");
    let body = body(head, tail, text.as_bytes());
    let file = name(&BlobHash::digest(text.as_bytes()));
    let recorded = shown(body, &Whole::File(file.clone()));
    let words =
        format!("line 20\r\n[270 of 531 bytes left out; the whole is in offload/{file}]\nline 51\r\n");
    assert!(recorded.contains(&words), "{recorded:?}");
}

fn body(head: &str, tail: &str, whole: &[u8]) -> Body {
    let rest = BlobRef { hash: BlobHash::digest(whole), bytes: whole.len() as u64 };
    Body::text([head, tail].concat()).with_rest(rest, Some(head.len() as u32))
}

/// The note about missing text is never longer than what a packet is charged for it, whatever the numbers.
#[test]
fn the_words_in_a_gap_are_bounded() {
    for bytes in [0, 1, 1_536, 16 * 1024 * 1024 - 4, 16 * 1024 * 1024, u64::MAX] {
        let hash = BlobHash::digest(b"x");
        let wholes = [Whole::File(name(&hash)), Whole::NoRoom, Whole::Journal];
        for (whole, gap) in wholes.iter().flat_map(|whole| [(whole, Some(2)), (whole, None)]) {
            let rest = BlobRef { hash: hash.clone(), bytes };
            let recorded = shown(Body::text("abc").with_rest(rest, gap), whole);
            let most = if gap.is_some() { 128 } else { 112 };
            assert!(recorded.len() <= 3 + most, "{} bytes: {recorded}", recorded.len());
        }
    }
}

/// A gap that is not between two characters of the text is invalid, and without the whole nothing can be left out.
#[test]
fn a_gap_is_only_believed_where_it_can_be() {
    let with = |gap: &str, rest: &str| {
        serde_json::from_str::<Body>(&format!(r#"{{"text":"aöb"{rest}{gap}}}"#)).unwrap()
    };
    let rest = format!(r#","rest":{{"hash":"{}","bytes":9}}"#, BlobHash::digest(b"x"));
    let parts = |gap: &str| with(gap, &rest).ends().map(|(head, tail)| (head.to_owned(), tail.to_owned()));
    let two = |head: &str, tail: &str| Some((head.to_owned(), tail.to_owned()));
    assert_eq!(parts(r#","gap":1"#), two("a", "öb"));
    assert_eq!(parts(r#","gap":4"#), two("aöb", ""));
    for gap in ["", r#","gap":2"#, r#","gap":5"#, r#","gap":4294967295"#] {
        assert_eq!(parts(gap), None, "{gap}");
        assert_eq!(
            shown(with(gap, &rest), &Whole::NoRoom),
            format!(
                "aöb\n[only the beginning: 9 bytes in all; the whole is blob {}]",
                &BlobHash::digest(b"x").as_str()[..16]
            )
        );
    }
    assert_eq!(shown(with(r#","gap":1"#, ""), &Whole::NoRoom), "aöb");
}

/// Two outputs whose hashes begin alike do not replace each other, and the same output twice is one file.
#[test]
fn a_name_belongs_to_the_first_output_that_has_it() {
    let blob = |hash: String| BlobRef { hash: hash.parse().unwrap(), bytes: 10 };
    let (one, other) = (blob("a".repeat(64)), blob("a".repeat(63) + "b"));
    for [first, second] in [[&one, &other], [&other, &one]] {
        let mut offloads = Offloads::default();
        let file = Whole::File("aaaaaaaaaaaaaaaa.txt".to_owned());
        let taken = [offloads.take(first), offloads.take(second), offloads.take(first)];
        assert_eq!(taken, [file.clone(), Whole::NoRoom, file]);
        assert_eq!(offloads.names().collect::<Vec<_>>(), ["aaaaaaaaaaaaaaaa.txt"]);
    }
}
