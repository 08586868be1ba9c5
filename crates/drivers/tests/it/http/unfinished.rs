//! Streams of Gemini, which has no last event: only the end of the body says that nothing is missing.

use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use spinney_drivers::http::{AnswerBody, AnswerHead, BodyEnd, Reached};
use spinney_drivers::wire::{Keep, WireFault, WireFaultKind, WireFormat, WireUsage};

use super::super::wire::read_as;

fn chunk(text: &str, output: u64) -> Value {
    json!({
        "candidates": [{ "content": { "parts": [{ "text": text }] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": output },
    })
}

/// The output tokens of a body, or what is wrong with it.
fn read(body: &str, end: BodyEnd) -> Result<Option<u64>, WireFaultKind> {
    let head = AnswerHead::new(200, &HeaderMap::new());
    let mut answer = AnswerBody::new(read_as(WireFormat::Gemini, Keep::Everything), head, 1_000_000);
    answer.feed(body.as_bytes(), &mut |_| {});
    answer.finish(end, &mut |_| {}).map(|answer| answer.usage.output).map_err(|failed| {
        // At its full hold: what was reported may not be the last usage.
        assert_eq!((failed.reached, failed.answer.usage), (Reached::Sent, WireUsage::default()), "{body}");
        failed.fault.kind
    })
}

/// A reason to stop comes with every chunk of some servers, so it ends nothing.
#[test]
fn a_stream_of_gemini_that_breaks_off_is_never_whole() {
    let first = format!("data: {}\n\n", chunk("a", 1));
    let last = format!("data: {}", chunk("b", 2_000));
    let whole = |more: &str| read(&format!("{first}{more}"), BodyEnd::Clean);
    assert_eq!(whole(""), Ok(Some(1)));
    assert_eq!(whole(&format!("{last}\n\n")), Ok(Some(2_000)));
    // An event without an empty line after it is the last one.
    for end in ["\n", ""] {
        assert_eq!(whole(&format!("{last}{end}")), Ok(Some(2_000)));
    }
    assert_eq!(whole("data: [DONE]\n\n"), Ok(Some(1)));
    assert_eq!(whole(": nothing\n\n"), Ok(Some(1)));
    let half = &last[..last.len() - 9];
    for cut in [half.to_owned(), format!("{half}\n\n"), "data: {\n\n".to_owned()] {
        assert_eq!(whole(&cut), Err(WireFaultKind::Malformed), "{cut}");
    }
    let error = json!({ "error": { "code": 503, "status": "UNAVAILABLE", "message": "later" } });
    assert!(whole(&format!("data: {error}\n\n")).is_err());
    let broken = BodyEnd::Broken(WireFault::new(WireFaultKind::Cut, "the connection broke"));
    assert_eq!(read(&first, broken), Err(WireFaultKind::Cut));
}
