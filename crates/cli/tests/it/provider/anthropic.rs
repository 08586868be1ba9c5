//! Answers as Anthropic's messages.

use serde_json::{Value, json};
use spinney_kernel::budget::Usage;

use super::answer::Answer;
use super::question::Question;

pub(super) fn whole(question: &Question, answer: &Answer) -> Value {
    let mut message = message(question);
    message["content"] = blocks(question, answer).into();
    message["stop_reason"] = stop(answer).into();
    message["usage"] = usage(&answer.usage, answer.usage.output_tokens());
    message
}

pub(super) fn stream(question: &Question, answer: &Answer) -> String {
    let mut start = message(question);
    start["usage"] = usage(&answer.usage, 1);
    let mut events = vec![json!({ "type": "message_start", "message": start })];
    for (index, block) in blocks(question, answer).into_iter().enumerate() {
        let (empty, delta) = match block["type"].as_str().unwrap() {
            "text" => {
                let delta = json!({ "type": "text_delta", "text": block["text"] });
                (json!({ "type": "text", "text": "" }), delta)
            }
            _ => {
                let delta = json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() });
                (json!({ "type": "tool_use", "id": block["id"], "name": block["name"], "input": {} }), delta)
            }
        };
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        if index == 0 {
            events.push(json!({ "type": "ping" }));
        }
        events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let delta = json!({ "stop_reason": stop(answer), "stop_sequence": null });
    let used = usage(&answer.usage, answer.usage.output_tokens());
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": used }));
    events.push(json!({ "type": "message_stop" }));
    let lines =
        events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    lines.collect()
}

/// A message without content.
fn message(question: &Question) -> Value {
    json!({
        "id": format!("msg_{:04}", question.turns), "type": "message", "role": "assistant", "model": question.model,
        "content": [], "stop_reason": null, "stop_sequence": null,
    })
}

fn blocks(question: &Question, answer: &Answer) -> Vec<Value> {
    let text = (!answer.text.is_empty()).then(|| json!({ "type": "text", "text": answer.text }));
    let calls = answer.calls.iter().enumerate().map(|(place, (tool, input))| {
        let id = format!("toolu_{}", Answer::call_id(question.turns, place));
        json!({ "type": "tool_use", "id": id, "name": tool, "input": input })
    });
    text.into_iter().chain(calls).collect()
}

const fn stop(answer: &Answer) -> &'static str {
    if answer.calls.is_empty() { "end_turn" } else { "tool_use" }
}

fn usage(usage: &Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_read_input_tokens": usage.cached_input,
        "cache_creation_input_tokens": usage.cache_write + usage.cache_write_1h,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": usage.cache_write_1h,
        },
        "output_tokens": output,
    })
}
