//! Answers as OpenAI's responses.

use serde_json::{Value, json};
use spinney_kernel::budget::Usage;

use super::answer::Answer;
use super::question::Question;

pub(super) fn whole(question: &Question, answer: &Answer) -> Value {
    let mut response = response(question, "completed");
    response["output"] = items(question, answer).into();
    response["usage"] = usage(&answer.usage);
    response
}

pub(super) fn stream(question: &Question, answer: &Answer) -> String {
    let mut events =
        vec![json!({ "type": "response.created", "response": response(question, "in_progress") })];
    for (index, item) in items(question, answer).into_iter().enumerate() {
        let mut started = item.clone();
        started["status"] = "in_progress".into();
        let id = item["id"].clone();
        let delta = match item["type"].as_str().unwrap() {
            "message" => {
                started["content"] = json!([]);
                let text = &item["content"][0]["text"];
                json!({ "type": "response.output_text.delta", "item_id": id, "output_index": index, "content_index": 0, "delta": text })
            }
            // It comes as a whole.
            "compaction" => {
                events.push(
                    json!({ "type": "response.output_item.done", "output_index": index, "item": item }),
                );
                continue;
            }
            "custom_tool_call" => {
                started["input"] = "".into();
                json!({ "type": "response.custom_tool_call_input.delta", "item_id": id, "output_index": index, "delta": item["input"] })
            }
            _ => {
                started["arguments"] = "".into();
                json!({ "type": "response.function_call_arguments.delta", "item_id": id, "output_index": index, "delta": item["arguments"] })
            }
        };
        events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": started }));
        events.push(delta);
        events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
    }
    events.push(json!({ "type": "response.completed", "response": whole(question, answer) }));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    let lines =
        events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    lines.collect()
}

/// A response without output.
fn response(question: &Question, status: &str) -> Value {
    json!({
        "id": format!("resp_{:04}", question.turns), "object": "response", "created_at": 1_700_000_000, "status": status,
        "model": question.model, "output": [], "usage": null, "error": null, "incomplete_details": null,
    })
}

fn items(question: &Question, answer: &Answer) -> Vec<Value> {
    if question.is_compaction() {
        let id = format!("cmp_{:04}", question.turns);
        return vec![json!({ "type": "compaction", "id": id, "encrypted_content": answer.text })];
    }
    let text = (!answer.text.is_empty()).then(|| {
        let content = json!([{ "type": "output_text", "text": answer.text, "annotations": [] }]);
        let id = format!("msg_{:04}", question.turns);
        json!({ "type": "message", "id": id, "status": "completed", "role": "assistant", "content": content })
    });
    let calls = answer.calls.iter().enumerate().map(|(place, (tool, arguments))| {
        let id = Answer::call_id(question.turns, place);
        if let Value::String(input) = arguments {
            return json!({
                "type": "custom_tool_call", "id": format!("ctc_{id}"), "status": "completed", "call_id": id, "name": tool,
                "input": input,
            });
        }
        let mut call = json!({
            "type": "function_call", "id": format!("fc_{id}"), "status": "completed", "call_id": id, "name": tool,
            "arguments": arguments.to_string(),
        });
        // A tool of a group is named by both.
        if let Some((group, name)) = tool.split_once('/') {
            call["namespace"] = group.into();
            call["name"] = name.into();
        }
        call
    });
    text.into_iter().chain(calls).collect()
}

fn usage(usage: &Usage) -> Value {
    let (input, output) = (usage.input_tokens(), usage.output_tokens());
    let details = json!({ "cached_tokens": usage.cached_input, "cache_write_tokens": usage.cache_write });
    json!({
        "input_tokens": input, "input_tokens_details": details,
        "output_tokens": output, "output_tokens_details": { "reasoning_tokens": usage.reasoning },
        "total_tokens": input + output,
    })
}
