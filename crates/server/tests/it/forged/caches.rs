//! Cache writes: input that costs more than its plain price, for minutes or for an hour.

use serde_json::{Value, json};

use super::bill::Billed;
use super::row::{Row, UP_TO_CAP, input};
use crate::provider::Format;

const LONG: u64 = 20_000;

fn long() -> String {
    "a".repeat(20_000)
}

/// Everything is written, for minutes.
const fn written_5m(tokens: u64) -> Billed {
    Billed { plain: 0, written_5m: tokens, output: UP_TO_CAP, ..input(0) }
}

/// Everything is written, for an hour.
const fn written_1h(tokens: u64) -> Billed {
    Billed { plain: 0, written_1h: tokens, output: UP_TO_CAP, ..input(0) }
}

/// A call whose input is known afterwards, and the same once more: its hold has little room.
fn again(row: Row, body: Value, bill: Billed) -> Row {
    row.sent(body.clone(), bill).sent(body, bill)
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = marks();
    rows.extend(unmarked());
    rows.extend(open_ai());
    rows
}

fn marks() -> Vec<Row> {
    let row = |name: &'static str| Row::new(Format::Messages, name);
    let (minutes, hour) = (json!({ "type": "ephemeral" }), json!({ "type": "ephemeral", "ttl": "1h" }));
    let text = |mark: &Value| json!({ "type": "text", "text": long(), "cache_control": mark });
    let said = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
    let result =
        |mark: &Value| json!([{ "type": "tool_result", "tool_use_id": "t", "content": [text(mark)] }]);
    let tool = json!([{ "name": "f", "description": long(), "input_schema": {}, "cache_control": hour }]);
    let body = |mark: &str| {
        let text = long();
        format!(
            r#"{{"model":"claude-sonnet-4-5","max_tokens":64,"messages":[{{"role":"user","content":[{{"type":"text","text":"{text}",{mark}}}]}}]}}"#
        )
    };
    vec![
        again(row("a mark for minutes"), said(json!([text(&minutes)])), written_5m(LONG)),
        again(row("a mark for an hour"), said(json!([text(&hour)])), written_1h(LONG)),
        again(row("a mark for an hour in a tool result"), said(result(&hour)), written_1h(LONG)),
        again(row("a mark for an hour at a tool"), json!({ "tools": tool }), written_1h(LONG)),
        again(
            row("a mark for an hour at the top"),
            json!({ "cache_control": hour, "messages": [{ "role": "user", "content": long() }] }),
            written_1h(LONG),
        ),
        again(row("a mark for an hour beside one for minutes"), said(json!([text(&minutes), text(&hour)])), written_1h(2 * LONG)),
        again(row("a mark whose lifetime is a number"), said(json!([text(&json!({ "ttl": 3_600 }))])), written_1h(LONG)),
        row("a mark of another lifetime").refused(said(json!([text(&json!({ "type": "ephemeral", "ttl": "24h" }))]))),
        row("a mark whose name is escaped")
            .sent_bytes(body(r#""cache\u005fcontrol":{"type":"ephemeral","\u0074tl":"1h"}"#), written_1h(LONG))
            .sent_bytes(body(r#""cache\u005fcontrol":{"type":"ephemeral","\u0074tl":"1h"}"#), written_1h(LONG)),
        row("a mark in other letters")
            .sent_bytes(body(r#""Cache_Control":{"type":"ephemeral","ttl":"1h"}"#), written_1h(LONG)),
        row("a lifetime in other letters")
            .sent_bytes(body(r#""cache_control":{"type":"ephemeral","TTL":"1h"}"#), written_1h(LONG)),
        row("two marks in one object").sent_bytes(
            body(r#""cache_control":{"type":"ephemeral"},"cache_control":{"type":"ephemeral","ttl":"1h"}"#),
            written_1h(LONG),
        ),
        row("two lifetimes in one mark")
            .sent_bytes(body(r#""cache_control":{"ttl":"5m","ttl":"1h"}"#), written_1h(LONG)),
        row("writes for an hour without their lifetimes").sent(said(json!([text(&hour)])), written_1h(LONG)).reports(|billed| {
            json!({ "input_tokens": 0, "cache_creation_input_tokens": billed.written_1h, "output_tokens": billed.output })
        }),
        row("writes for minutes without their lifetimes").sent(said(json!([text(&minutes)])), written_5m(LONG)).reports(
            |billed| json!({ "input_tokens": 0, "cache_creation_input_tokens": billed.written_5m, "output_tokens": billed.output }),
        ),
        row("a price with two lengths").model("claude-haiku-5-5").sent(
            said(json!([{ "type": "text", "text": "a".repeat(110_000), "cache_control": hour }])),
            written_1h(110_000),
        ),
    ]
}

/// No mark, and writes anyway: a server in between may add marks of its own.
fn unmarked() -> Vec<Row> {
    let said = json!({ "messages": [{ "role": "user", "content": long() }] });
    let undivided = |billed: &Billed| {
        json!({ "input_tokens": 0, "output_tokens": billed.output,
            "cache_creation_input_tokens": billed.written_5m + billed.written_1h })
    };
    // As a server counts that hands the messages of a chat on to Anthropic.
    let translated = |billed: &Billed| {
        json!({ "prompt_tokens": billed.input(), "completion_tokens": billed.output,
            "total_tokens": billed.input() + billed.output, "cache_read_input_tokens": billed.cached,
            "cache_creation_input_tokens": billed.written_5m + billed.written_1h,
            "prompt_tokens_details": { "cached_tokens": billed.cached } })
    };
    let details = |billed: &Billed| {
        json!({ "prompt_tokens": billed.input(), "completion_tokens": billed.output,
            "prompt_tokens_details": { "cached_tokens": 0, "cache_creation_tokens": billed.written_1h } })
    };
    let row = |name: &'static str| Row::new(Format::Messages, name).elsewhere();
    let chat = |name: &'static str| {
        Row::new(Format::Chat, name).elsewhere().model("claude-sonnet-4-5").prices_of("anthropic")
    };
    vec![
        again(row("a server that adds marks for minutes"), said.clone(), written_5m(LONG)),
        again(row("a server that adds marks for an hour"), said.clone(), written_1h(LONG)),
        row("a server that adds marks and does not say for how long")
            .sent(said.clone(), written_1h(LONG))
            .reports(undivided),
        chat("writes in the usage of a chat, as Anthropic names them")
            .sent(said.clone(), written_1h(LONG))
            .reports(translated),
        chat("writes in the details of a chat").sent(said, written_1h(LONG)).reports(details),
    ]
}

/// OpenAI writes without any mark.
fn open_ai() -> Vec<Row> {
    let words = "a b ".repeat(5_000);
    let chat = json!({ "messages": [{ "role": "user", "content": words }] });
    let responses = json!({ "input": words });
    let row = |format: Format, name: &'static str| Row::new(format, name).model("gpt-6.1-sol");
    let read = Billed { plain: 0, cached: 10_000, ..input(0) };
    vec![
        again(row(Format::Chat, "implicit writes of a chat"), chat, written_5m(10_000)),
        again(row(Format::Responses, "implicit writes of responses"), responses.clone(), written_5m(10_000)),
        again(
            row(Format::Responses, "writes for half an hour"),
            json!({ "input": words, "prompt_cache_options": { "ttl": "30m" } }),
            written_5m(10_000),
        ),
        again(row(Format::Responses, "reads of a cache"), responses, read),
    ]
}
