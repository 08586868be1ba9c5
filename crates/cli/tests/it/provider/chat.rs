//! Answers as OpenAI's chat completions.

use serde_json::{Value, json};
use spinney_kernel::budget::Usage;

use super::answer::Answer;
use super::question::Question;

pub(super) fn whole(question: &Question, answer: &Answer) -> Value {
    let mut message = json!({ "role": "assistant", "content": answer.text });
    if !answer.calls.is_empty() {
        message["tool_calls"] = calls(question, answer).into();
    }
    let choice = json!({ "index": 0, "message": message, "finish_reason": stop(answer) });
    json!({
        "id": format!("chatcmpl-{:04}", question.turns), "object": "chat.completion", "created": 1_700_000_000,
        "model": question.model, "choices": [choice], "usage": usage(&answer.usage),
    })
}

/// The last chunk has the usage, and comes only if it was asked for.
pub(super) fn stream(question: &Question, answer: &Answer) -> String {
    let mut delta = json!({ "role": "assistant", "content": answer.text });
    if !answer.calls.is_empty() {
        delta["tool_calls"] = calls(question, answer).into();
    }
    let mut chunks = vec![
        json!([{ "index": 0, "delta": delta, "finish_reason": null }]),
        json!([{ "index": 0, "delta": {}, "finish_reason": stop(answer) }]),
    ];
    let counts = question.asked.body["stream_options"]["include_usage"] == true;
    if counts {
        chunks.push(json!([]));
    }
    let last = chunks.len() - 1;
    let lines = chunks.into_iter().enumerate().map(|(place, choices)| {
        let mut chunk = json!({
            "id": format!("chatcmpl-{:04}", question.turns), "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": question.model, "choices": choices,
        });
        if counts {
            chunk["usage"] = if place == last { usage(&answer.usage) } else { Value::Null };
        }
        format!("data: {chunk}\n\n")
    });
    lines.chain(["data: [DONE]\n\n".to_owned()]).collect()
}

fn calls(question: &Question, answer: &Answer) -> Vec<Value> {
    let calls = answer.calls.iter().enumerate().map(|(place, (tool, arguments))| {
        let function = json!({ "name": tool, "arguments": arguments.to_string() });
        json!({ "index": place, "id": Answer::call_id(question.turns, place), "type": "function", "function": function })
    });
    calls.collect()
}

const fn stop(answer: &Answer) -> &'static str {
    if answer.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(usage: &Usage) -> Value {
    let (input, output) = (usage.input_tokens(), usage.output_tokens());
    let details = json!({ "cached_tokens": usage.cached_input, "cache_write_tokens": usage.cache_write });
    json!({
        "prompt_tokens": input, "prompt_tokens_details": details,
        "completion_tokens": output, "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
        "total_tokens": input + output,
    })
}
