//! Streams in pieces, cut, and damaged.

use proptest::prelude::*;
use spinney_drivers::wire::{Keep, StreamEnd, WireFormat};

use super::{Outcome, Recorded, all, outcome, read, read_as};

fn in_chunks(stream: &Recorded, sizes: &[usize]) -> Outcome {
    let (mut rest, mut chunks) = (stream.bytes.as_slice(), Vec::new());
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    outcome(read_as(stream.format, Keep::Everything), chunks)
}

#[test]
fn one_byte_at_a_time_reads_like_the_whole() {
    for stream in all() {
        assert_eq!(in_chunks(&stream, &[1]), read(&stream), "{}", stream.shape);
    }
}

#[test]
fn a_stream_cut_anywhere_is_cut_or_lacks_nothing_but_usage() {
    for stream in all() {
        let whole = read(&stream);
        // Every place would take quadratic time; a stride that no line has meets all kinds of places.
        for end in (0..stream.bytes.len()).step_by(11) {
            let part = outcome(read_as(stream.format, Keep::Everything), [&stream.bytes[..end]]);
            if part.answer.end == StreamEnd::Whole && whole.answer.end == StreamEnd::Whole {
                assert_eq!(part.answer.text, whole.answer.text, "{} at {end}", stream.shape);
                assert_eq!(part.answer.calls, whole.answer.calls, "{} at {end}", stream.shape);
                assert_eq!(part.answer.stop, whole.answer.stop, "{} at {end}", stream.shape);
                assert_eq!(part.answer.continuation, whole.answer.continuation, "{} at {end}", stream.shape);
            } else {
                assert_eq!(part.answer.end, StreamEnd::Cut, "{} at {end}", stream.shape);
                assert_eq!(part.answer.usage.output, None, "{} at {end}", stream.shape);
            }
            assert!(whole.answer.text.starts_with(&part.answer.text), "{} at {end}", stream.shape);
        }
    }
}

proptest! {
    #[test]
    fn any_chunks_read_like_the_whole(pick in any::<prop::sample::Index>(), sizes in prop::collection::vec(1_usize..200, 1..20)) {
        let streams = all();
        let stream = &streams[pick.index(streams.len())];
        prop_assert_eq!(in_chunks(stream, &sizes), read(stream));
    }

    #[test]
    fn damaged_streams_never_panic(
        pick in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let streams = all();
        let stream = &streams[pick.index(streams.len())];
        let mut bytes = stream.bytes.clone();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let outcome = outcome(read_as(stream.format, Keep::Everything), [bytes.as_slice()]);
        prop_assert!(outcome.fault.is_none() || outcome.answer.end == StreamEnd::Cut);
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400), words in prop::collection::vec(word(), 0..40)) {
        for format in WireFormat::ALL {
            outcome(read_as(format, Keep::Everything), [bytes.as_slice(), words.concat().as_bytes()]);
        }
    }
}

/// What streams are made of, in no order.
fn word() -> impl Strategy<Value = String> {
    let words = [
        "data: ",
        "data:",
        "event: error",
        "\n",
        "\r",
        "\n\n",
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "null",
        "[DONE]",
        "{}",
        "-1",
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_stop"}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{"}}]},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{}],"usage":[]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call"}}"#,
        r#"{"type":"response.completed","response":{"output":[1]}}"#,
        r#"{"error":"x"}"#,
        r#"{"error":[]}"#,
        "\u{feff}",
        "\u{0}",
    ];
    prop::sample::select(words.to_vec()).prop_map(str::to_owned)
}
