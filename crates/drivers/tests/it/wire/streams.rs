//! Each stream of the corpus, read in one piece.

use spinney_drivers::wire::{Keep, StreamEnd, WireFormat};

use super::{all, folder, outcome, read, read_as, recorded};

#[test]
fn every_recorded_stream_reads_as_reviewed() {
    for format in WireFormat::ALL {
        let shapes = recorded(format)
            .into_iter()
            .map(|stream| format!("# {}\n{}", stream.shape, read(&stream).text()));
        let text = shapes.collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(folder(format), text);
    }
}

#[test]
fn what_is_named_cut_is_cut_and_all_else_is_whole_or_a_fault() {
    for stream in all() {
        let outcome = read(&stream);
        // Nothing but the usage follows the reason to stop.
        let is_cut = stream.shape.starts_with("cut") && stream.shape != "cut_before_usage";
        match (outcome.answer.end, &outcome.fault) {
            (StreamEnd::Cut, None) => assert!(is_cut, "{}", stream.shape),
            (StreamEnd::Cut, Some(_)) | (StreamEnd::Whole, None) => assert!(!is_cut, "{}", stream.shape),
            (StreamEnd::Whole, Some(fault)) => panic!("{}: whole, and {fault}", stream.shape),
            (StreamEnd::Refused, _) => panic!("{}: an error before the answer", stream.shape),
        }
        if outcome.answer.end == StreamEnd::Cut {
            assert_eq!(outcome.answer.usage.output, None, "{}: no count is final", stream.shape);
        }
    }
}

#[test]
fn a_reader_that_keeps_facts_only_sees_the_same_usage_stop_and_deltas() {
    for stream in all() {
        let whole = read(&stream);
        let facts = outcome(read_as(stream.format, Keep::Facts), [stream.bytes.as_slice()]);
        assert_eq!(facts.answer.usage, whole.answer.usage, "{}", stream.shape);
        assert_eq!(facts.answer.stop, whole.answer.stop, "{}", stream.shape);
        assert_eq!(facts.answer.model, whole.answer.model, "{}", stream.shape);
        assert_eq!((facts.deltas, facts.fault), (whole.deltas, whole.fault), "{}", stream.shape);
        assert!(facts.answer.text.is_empty() && facts.answer.calls.is_empty(), "{}", stream.shape);
        assert_eq!(facts.answer.continuation, None, "{}", stream.shape);
    }
}
