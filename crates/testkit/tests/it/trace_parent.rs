//! The trace of a caller: what is read, and that it is in the journal only if there is one.

use proptest::prelude::*;
use spinney_journal::Batch;
use spinney_kernel::primitives::TraceParent;
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::Start;
use spinney_testkit::{Scenario, definition};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_traceparent_is_read_exactly_or_refused() {
    let trace: TraceParent = TRACE.parse().unwrap();
    assert_eq!(trace.to_string(), TRACE);
    assert_eq!(trace.trace_id(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
    assert_eq!((trace.parent_id(), trace.flags()), (0x00f0_67aa_0ba9_02b7, 1));
    for bad in [
        "",
        "00",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e47360-00f067aa0ba902b7-01",
        "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n",
    ] {
        assert!(bad.parse::<TraceParent>().is_err(), "{bad}");
        assert!(serde_json::from_value::<TraceParent>(bad.into()).is_err(), "{bad}");
    }
    assert_eq!(
        "x".parse::<TraceParent>().unwrap_err().to_string(),
        "`x` is not a valid traceparent: `00-`, 32 hex digits, `-`, 16 hex digits, `-` and 2 hex digits, in lowercase, and neither id all zeros"
    );
}

proptest! {
    #[test]
    fn every_traceparent_is_read_as_it_was_written(trace_id in 1..=u128::MAX, parent_id in 1..=u64::MAX, flags: u8) {
        let text = format!("00-{trace_id:032x}-{parent_id:016x}-{flags:02x}");
        let trace: TraceParent = text.parse().unwrap();
        prop_assert_eq!(trace.to_string(), text.clone());
        prop_assert_eq!(serde_json::to_value(trace).unwrap(), text.clone());
        prop_assert_eq!(serde_json::from_value::<TraceParent>(text.into()).unwrap(), trace);
    }
}

#[test]
fn the_first_event_has_the_trace_of_its_request_and_nothing_if_there_is_none() {
    for trace in [None, Some(TRACE.parse().unwrap())] {
        let mut play = Scenario::seed();
        play.must(Start { trace, ..Start::new(definition("root turns=5")) });
        let first = play.batches()[0].events[0].clone();
        assert!(matches!(first, Event::TreeStarted { trace: found, .. } if found == trace), "{first:?}");
        let bytes = play.batches()[0].clone().encode().unwrap();
        assert_eq!(Batch::decode(bytes.bytes()).unwrap(), play.batches()[0]);
        let text = String::from_utf8(bytes.bytes().to_vec()).unwrap();
        assert_eq!(text.contains("\"trace\""), trace.is_some(), "{text}");
    }
}
