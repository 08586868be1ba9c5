//! What a provider says that it used: too little at first, less later, in parts, nothing, or nonsense.

use serde_json::{Value, json};

use super::bill::Billed;
use super::row::{Reply, Row, input, whole};
use crate::provider::Format;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = streams();
    rows.extend(chats());
    rows.extend(wholes());
    rows
}

fn row(format: Format, name: impl Into<String>) -> Row {
    Row::new(format, name)
}

/// A bill with a cache read.
const BILL: Billed =
    Billed { plain: 10, cached: 8, written_5m: 0, written_1h: 0, output: 60, apart_nanos: 0 };

fn streamed(
    format: Format,
    name: &'static str,
    bill: Billed,
    events: impl Fn(&Billed) -> Vec<Value> + Send + Sync + 'static,
) -> Row {
    row(format, name)
        .sent(json!({ "stream": true }), bill)
        .answers(move |billed| Reply::stream(&events(billed)))
}

fn begin(usage: Value) -> Value {
    json!({ "type": "message_start", "message": { "id": "m", "model": "m", "content": [], "usage": usage } })
}

fn text(text: &str) -> [Value; 2] {
    [
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } }),
    ]
}

fn delta(usage: Value) -> Value {
    json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": usage })
}

fn message(start: Value, last: Value) -> Vec<Value> {
    let [first, second] = text("hello");
    vec![begin(start), first, second, delta(last), json!({ "type": "message_stop" })]
}

fn streams() -> Vec<Row> {
    let messages = |name, events: fn(&Billed) -> Vec<Value>| streamed(Format::Messages, name, BILL, events);
    vec![
        messages("input that shrinks", |b| {
            message(
                json!({ "input_tokens": b.plain, "cache_read_input_tokens": b.cached, "output_tokens": 1 }),
                json!({ "input_tokens": 1, "cache_read_input_tokens": 0, "output_tokens": b.output }),
            )
        }),
        messages("input that becomes a read of the cache", |b| {
            message(
                json!({ "input_tokens": b.plain + b.cached, "output_tokens": 1 }),
                json!({ "input_tokens": 0, "cache_read_input_tokens": b.plain + b.cached, "output_tokens": b.output }),
            )
        }),
        messages("output that is counted at the beginning only", |b| {
            message(json!({ "input_tokens": 18, "output_tokens": b.output / 2 }), Value::Null)
        }),
        messages("output that shrinks", |b| {
            let mut events = message(
                json!({ "input_tokens": 18, "output_tokens": 1 }),
                json!({ "output_tokens": b.output }),
            );
            events.insert(4, delta(json!({ "output_tokens": 1 })));
            events.swap(3, 4);
            events
        }),
        messages("output after its count", |b| {
            let mut events = message(
                json!({ "input_tokens": 18, "output_tokens": 1 }),
                json!({ "output_tokens": b.output / 2 }),
            );
            events.insert(4, text("more")[1].clone());
            events
        }),
        messages("no input at the beginning", |b| {
            message(json!({ "output_tokens": 1 }), json!({ "output_tokens": b.output }))
        }),
        messages("no usage at the beginning", |b| {
            message(Value::Null, json!({ "input_tokens": 18, "output_tokens": b.output }))
        }),
        messages("a stream without its last event", |b| {
            let mut events = message(
                json!({ "input_tokens": 18, "output_tokens": 1 }),
                json!({ "output_tokens": b.output / 2 }),
            );
            events.pop();
            events
        }),
        messages("an error after the usage", |b| {
            let mut events = message(
                json!({ "input_tokens": 18, "output_tokens": 1 }),
                json!({ "output_tokens": b.output / 2 }),
            );
            events[4] = json!({ "type": "error", "error": { "type": "overloaded_error" } });
            events
        }),
        streamed(Format::Responses, "usage before the end", BILL, |b| {
            vec![
                json!({ "type": "response.created", "response": { "id": "r", "status": "in_progress",
                    "usage": { "input_tokens": 18, "output_tokens": 1 } } }),
                json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "hello" }),
                json!({ "type": "response.completed", "response": { "status": "completed", "output": [],
                    "usage": { "input_tokens": 2, "output_tokens": b.output } } }),
            ]
        }),
        streamed(Format::Responses, "a response that fails with usage", BILL, |b| {
            vec![
                json!({ "type": "response.failed", "response": { "status": "failed", "output": [], "error": { "code": "server_error" },
                "usage": { "input_tokens": 1, "output_tokens": b.output / 2 } } }),
            ]
        }),
        streamed(Format::Responses, "a response that is cancelled", BILL, |b| {
            vec![json!({ "type": "response.cancelled", "response": { "status": "cancelled", "output": [],
                "usage": { "input_tokens": 1, "output_tokens": b.output / 2 } } })]
        }),
        streamed(Format::Responses, "a stream that only says that it is done", BILL, |_| {
            vec![json!("[DONE]")]
        }),
    ]
}

fn chunk(choices: Value, usage: Value) -> Value {
    json!({ "id": "c", "object": "chat.completion.chunk", "model": "m", "choices": choices, "usage": usage })
}

fn word() -> Value {
    json!([{ "index": 0, "delta": { "content": "hello" } }])
}

fn stop() -> Value {
    json!([{ "index": 0, "delta": {}, "finish_reason": "stop" }])
}

fn count(output: u64) -> Value {
    json!({ "prompt_tokens": 18, "completion_tokens": output, "total_tokens": 18 + output })
}

fn chats() -> Vec<Row> {
    let chat = |name, events: fn(&Billed) -> Vec<Value>| streamed(Format::Chat, name, BILL, events);
    vec![
        chat("usage with every chunk", |b| {
            vec![
                chunk(word(), count(1)),
                chunk(word(), count(2)),
                chunk(stop(), count(b.output)),
                json!("[DONE]"),
            ]
        }),
        chat("usage before the last words", |b| {
            vec![
                chunk(word(), Value::Null),
                chunk(stop(), count(b.output / 2)),
                chunk(word(), Value::Null),
                json!("[DONE]"),
            ]
        }),
        chat("usage before words of another kind", |b| {
            let other = json!([{ "index": 0, "delta": { "thoughts": "hm" } }]);
            vec![chunk(stop(), count(b.output / 2)), chunk(other, Value::Null), json!("[DONE]")]
        }),
        chat("usage that shrinks", |b| {
            vec![
                chunk(word(), Value::Null),
                chunk(stop(), count(b.output)),
                chunk(json!([]), count(1)),
                json!("[DONE]"),
            ]
        }),
        chat("no usage", |_| vec![chunk(word(), Value::Null), chunk(stop(), Value::Null), json!("[DONE]")]),
        chat("output that only the total has", |b| {
            vec![
                chunk(word(), Value::Null),
                chunk(
                    stop(),
                    json!({ "prompt_tokens": 18, "completion_tokens": 1, "total_tokens": 18 + b.output }),
                ),
                json!("[DONE]"),
            ]
        }),
        chat("an error with usage", |b| {
            vec![json!({ "error": { "message": "x" }, "usage": count(b.output / 2) })]
        }),
        chat("the usage of one server elsewhere", |b| {
            vec![
                chunk(word(), Value::Null),
                json!({ "choices": stop(), "x_groq": { "usage": { "prompt_tokens": 18, "completion_tokens": b.output } } }),
                json!("[DONE]"),
            ]
        }),
    ]
}

/// A usage object with nonsense in it.
fn wholes() -> Vec<Row> {
    let nonsense = |name: &'static str, usage: fn(&Billed) -> Value| {
        row(Format::Messages, name).sent(json!({}), BILL).reports(usage)
    };
    let chat = |name: &'static str, usage: fn(&Billed) -> Value| {
        row(Format::Chat, name).sent(json!({}), BILL).reports(usage)
    };
    let tier = |format: Format, name: &'static str| {
        // The prices of the tier are twice those of the standard one; the bound of this input has room for that.
        let bill = Billed { plain: 30, output: 128, ..input(0) };
        row(format, name).sent(json!({ "max_completion_tokens": null, "max_output_tokens": null }), bill)
    };
    vec![
        nonsense("no usage at all", |_| Value::Null),
        nonsense("an empty usage", |_| json!({})),
        nonsense("zeros", |_| json!({ "input_tokens": 0, "output_tokens": 0 })),
        nonsense("output below zero", |_| json!({ "input_tokens": 18, "output_tokens": -1 })),
        nonsense("output with a fraction", |_| json!({ "input_tokens": 18, "output_tokens": 0.5 })),
        nonsense("output in a text", |_| json!({ "input_tokens": 18, "output_tokens": "1" })),
        nonsense("output beyond all numbers", |_| json!({ "input_tokens": 18, "output_tokens": u64::MAX })),
        nonsense("usage in a list", |_| json!([18, 1])),
        nonsense("writes that are not in their sum", |b| {
            json!({ "input_tokens": 0, "output_tokens": b.output, "cache_creation_input_tokens": 0,
                "cache_creation": { "ephemeral_1h_input_tokens": b.plain, "ephemeral_5m_input_tokens": b.cached } })
        }),
        nonsense("several calls of the model", |b| {
            json!({ "input_tokens": 1, "output_tokens": 1, "iterations": [
                { "type": "message", "input_tokens": b.plain, "output_tokens": b.output / 2 },
                { "type": "compaction", "input_tokens": b.cached, "output_tokens": b.output / 2 }] })
        }),
        nonsense(
            "a call of another model",
            |_| json!({ "input_tokens": 1, "output_tokens": 1, "iterations": [{ "type": "advisor_message", "input_tokens": 1, "output_tokens": 1 }] }),
        ),
        nonsense(
            "a region of its own",
            |b| json!({ "input_tokens": b.input(), "output_tokens": b.output / 2, "inference_geo": "us" }),
        ),
        nonsense(
            "a speed of its own",
            |b| json!({ "input_tokens": b.input(), "output_tokens": b.output / 2, "speed": "fast" }),
        ),
        chat(
            "details that are no object",
            |b| json!({ "prompt_tokens": b.input(), "completion_tokens": b.output, "prompt_tokens_details": "none" }),
        ),
        chat(
            "a cost below zero",
            |b| json!({ "prompt_tokens": 1, "completion_tokens": b.output / 2, "cost": -1 }),
        ),
        chat("more cached input than input", |b| {
            json!({ "prompt_tokens": b.input(), "completion_tokens": b.output,
                "prompt_tokens_details": { "cached_tokens": 1_000 } })
        }),
        tier(Format::Chat, "the tier of the answer").answers(|b| {
            let mut answer =
                whole(Format::Chat, &json!({ "prompt_tokens": b.input(), "completion_tokens": b.output }));
            answer["service_tier"] = json!("priority");
            Reply::json(&answer)
        }),
        tier(Format::Responses, "the tier of the response").answers(|b| {
            let mut answer =
                whole(Format::Responses, &json!({ "input_tokens": b.input(), "output_tokens": b.output }));
            answer["service_tier"] = json!("priority");
            Reply::json(&answer)
        }),
        row(Format::Responses, "searches of responses").sent(json!({}), BILL).answers(|b| {
            let mut answer = whole(
                Format::Responses,
                &json!({ "input_tokens": b.input(), "output_tokens": b.output / 2 }),
            );
            answer["tool_usage"] = json!({ "web_search": { "num_requests": 1 } });
            Reply::json(&answer)
        }),
        row(Format::Chat, "what a server says that it cost")
            .elsewhere()
            .sent(json!({}), BILL)
            .reports(|b| json!({ "prompt_tokens": 1, "completion_tokens": b.output, "cost": 0.01 })),
        row(Format::Messages, "a refusal with its usage").sent(json!({}), BILL).answers(|b| {
            let mut answer =
                whole(Format::Messages, &json!({ "input_tokens": b.input(), "output_tokens": b.output }));
            answer["stop_reason"] = json!("refusal");
            Reply::json(&answer)
        }),
    ]
}
