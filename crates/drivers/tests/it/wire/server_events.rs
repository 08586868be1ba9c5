//! Server-sent events on their own.

use proptest::prelude::*;
use spinney_drivers::wire::bounds::{EVENT_BYTES_MAX, LINE_BYTES_MAX};
use spinney_drivers::wire::{SseDecoder, SseFault};

type Events = Vec<(String, String)>;

fn decode<'c>(chunks: impl IntoIterator<Item = &'c [u8]>) -> (Events, Result<(), SseFault>) {
    let (mut decoder, mut events) = (SseDecoder::default(), Vec::new());
    for chunk in chunks {
        let fed = decoder.feed(chunk, &mut |event| {
            events.push((event.name.to_owned(), event.data.to_owned()));
            Ok::<(), SseFault>(())
        });
        if fed.is_err() {
            return (events, fed);
        }
    }
    (events, Ok(()))
}

fn events(text: &str) -> Vec<String> {
    let (events, fed) = decode([text.as_bytes()]);
    assert_eq!(fed, Ok(()));
    events.into_iter().map(|(name, data)| format!("{name}|{data}")).collect()
}

#[test]
fn events_are_decoded_as_the_standard_says() {
    let table = [
        ("data: a\n\n", vec!["|a"]),
        ("data:a\n\ndata:  b\n\n", vec!["|a", "| b"]),
        ("event: x\ndata: a\ndata: b\ndata\n\n", vec!["x|a\nb\n"]),
        ("data: a\r\n\r\ndata: b\r\rdata: c\n\r\n", vec!["|a", "|b", "|c"]),
        ("\u{feff}data: a\n\n\u{feff}data: b\n\n", vec!["|a"]),
        (": comment\ndata: a\nid: 1\nretry: 5\nunknown: x\n\n", vec!["|a"]),
        // An event without data is none, and its name is forgotten.
        ("event: x\n\ndata: a\n\n", vec!["|a"]),
        ("data:\n\n", vec!["|"]),
        // What no empty line ends is not there.
        ("data: a\n\ndata: b\n", vec!["|a"]),
        ("\n\n\r\r\n", vec![]),
    ];
    for (text, expected) in table {
        assert_eq!(events(text), expected, "{text:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_a_fault_and_what_came_before_is_not_lost() {
    let (events, fed) = decode([b"data: a\n\ndata: \xff\n\n".as_slice()]);
    assert_eq!((events.len(), fed), (1, Err(SseFault::NotUtf8)));
}

#[test]
fn lines_and_events_without_end_are_a_fault() {
    let chunk = vec![b'x'; 1024 * 1024];
    let line = std::iter::once(b"data: ".as_slice()).chain(std::iter::repeat_n(chunk.as_slice(), 64));
    assert_eq!(decode(line).1, Err(SseFault::LineTooLong));
    let lines = format!("data: {}\n", "y".repeat(1024 * 1024 - 1)).into_bytes();
    let event = std::iter::repeat_n(lines.as_slice(), EVENT_BYTES_MAX / lines.len() + 2);
    assert_eq!(decode(event).1, Err(SseFault::EventTooLarge));
    let at_once = vec![b'z'; LINE_BYTES_MAX + 1];
    assert_eq!(decode([at_once.as_slice(), b"\n".as_slice()]).1, Err(SseFault::LineTooLong));
}

#[test]
fn a_long_line_in_single_bytes_takes_no_longer_than_its_bytes() {
    let text = format!("data: {}\n\n", "x".repeat(2 * 1024 * 1024));
    let (events, fed) = decode(text.as_bytes().chunks(1));
    assert_eq!((events.len(), fed), (1, Ok(())));
}

proptest! {
    #[test]
    fn any_chunks_give_the_same_events(
        text in "(data|event|id|:|: |\n|\r|\r\n|\u{feff}|ä|🌲|[a-z]){0,60}",
        sizes in prop::collection::vec(1_usize..9, 1..20),
    ) {
        let whole = decode([text.as_bytes()]);
        let (mut rest, mut chunks) = (text.as_bytes(), Vec::new());
        for size in sizes.iter().cycle() {
            if rest.is_empty() { break; }
            let (chunk, after) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        prop_assert_eq!(decode(chunks), whole);
    }
}
