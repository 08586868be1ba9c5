//! The provider's own counter, which is asked where a cruder bound does not fit. It may lie, fail or talk nonsense.

use serde_json::{Value, json};

use super::row::{Reply, Row, input};
use crate::provider::Format;

/// Too little for the bytes of the text at the price of `claude-sonnet-4-5`, and enough for its tokens.
const CEILING: u64 = 200_000_000;
/// Its tokens, at four letters for each.
const TOKENS: u64 = 25_000;

fn body() -> Value {
    json!({ "messages": [{ "role": "user", "content": "abcd".repeat(25_000) }] })
}

fn row(name: &'static str, counter: Reply) -> Row {
    Row::new(Format::Messages, name).ceiling(CEILING).counter(counter)
}

fn counted(tokens: u64) -> Reply {
    Reply::json(&json!({ "input_tokens": tokens }))
}

pub(super) fn rows() -> Vec<Row> {
    let pdf = json!({ "messages": [{ "role": "user", "content": [{ "type": "document",
        "source": { "type": "base64", "media_type": "application/pdf", "data": "AAAA" } }] }] });
    let grows = json!({ "messages": [{ "role": "user", "content": [{ "type": "document",
        "source": { "type": "url", "url": "https://example.org" } }] }] });
    let wrong = [
        ("a counter that is not there", Reply::status(404, "{}")),
        ("a counter that refuses", Reply::status(400, "{}")),
        ("a counter that never answers", Reply::silent()),
        ("a counter that fails", Reply::status(500, "{}")),
        ("a counter that says nothing", Reply::status(200, "")),
        ("a counter that breaks off", counted(10).cut()),
        ("a count of zero", counted(0)),
        ("a count below zero", Reply::json(&json!({ "input_tokens": -5 }))),
        ("a count with a fraction", Reply::json(&json!({ "input_tokens": 5.5 }))),
        ("a count in a text", Reply::json(&json!({ "input_tokens": "5" }))),
        ("a count beyond all numbers", counted(u64::MAX)),
        ("a count without end", Reply::json(&json!({ "input_tokens": 5, "x": "y".repeat(100_000) }))),
        ("a count under another name", Reply::json(&json!({ "tokens": 5 }))),
    ];
    let other = json!({ "messages": [{ "role": "user", "content": "efgh".repeat(25_000) }] });
    // Without a count the bytes are too many for the ceiling.
    let mut rows: Vec<Row> =
        wrong.into_iter().map(|(name, reply)| row(name, reply).refused(body())).collect();
    rows.extend([
        row("a count that is right", counted(TOKENS)).sent(body(), input(TOKENS)),
        row("a count that is a little too small", counted(TOKENS - 400)).sent(body(), input(TOKENS)),
        row("a count of a PDF", counted(20_000)).sent(pdf, input(20_000)),
        // It is believed once, and what was used is booked.
        Row::new(Format::Messages, "a count that is far too small")
            .ceiling(CEILING)
            .lying_counter(counted(10))
            .sent(body(), input(TOKENS))
            .refused(other),
        row("a count of what a URL serves", counted(10)).refused(grows),
        row("a count, elsewhere", counted(10)).elsewhere().refused(body()),
        Row::new(Format::Chat, "a count of a chat")
            .ceiling(300_000)
            .counter(counted(10))
            .refused(json!({ "messages": [{ "role": "user", "content": "a b ".repeat(5_000) }] })),
    ]);
    rows
}
