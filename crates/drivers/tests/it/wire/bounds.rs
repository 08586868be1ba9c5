//! Answers without end are stopped, and long ones are read in linear time.

use serde_json::{Value, json};
use spinney_drivers::wire::bounds::{ANSWER_TEXT_BYTES_MAX, ARGUMENTS_BYTES_MAX, BLOCKS_MAX, CALLS_MAX};
use spinney_drivers::wire::{Keep, WireFaultKind, WireFormat};

use super::{Outcome, outcome, read_as};

/// One event, as often as it takes.
fn repeated(format: WireFormat, start: &str, event: &str, times: usize) -> Outcome {
    let (start, event) = (format!("data: {start}\n\n"), format!("data: {event}\n\n"));
    let chunks = std::iter::once(start.as_bytes()).chain(std::iter::repeat_n(event.as_bytes(), times));
    outcome(read_as(format, Keep::Everything), chunks)
}

const TEXT: WireFormat = WireFormat::AnthropicMessages;

#[test]
fn text_arguments_calls_and_blocks_without_end_are_a_fault() {
    let piece = "x".repeat(512 * 1024);
    let block =
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } });
    let delta = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": piece } });
    let text = repeated(TEXT, &block.to_string(), &delta.to_string(), 1_000);
    assert_eq!(text.answer.text.len(), ANSWER_TEXT_BYTES_MAX);

    let block = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "t", "name": "n" } });
    let delta = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": piece } });
    let arguments = repeated(TEXT, &block.to_string(), &delta.to_string(), 1_000);
    assert_eq!(arguments.answer.calls[0].arguments.len(), ARGUMENTS_BYTES_MAX);

    let calls = repeated(TEXT, &block.to_string(), &block.to_string(), 100_000);
    assert_eq!(calls.answer.calls.len(), CALLS_MAX);

    let thinking =
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking" } });
    let blocks = repeated(TEXT, &thinking.to_string(), &thinking.to_string(), BLOCKS_MAX + 1);
    for outcome in [text, arguments, calls, blocks] {
        assert_eq!(outcome.fault.map(|fault| fault.kind), Some(WireFaultKind::TooLarge));
    }
}

#[test]
fn a_reader_that_keeps_facts_only_passes_any_length() {
    let delta = json!({ "choices": [{ "delta": { "content": "x".repeat(512 * 1024) } }] }).to_string();
    let (bytes, event) = (16, format!("data: {delta}\n\n"));
    let mut reader = spinney_drivers::wire::StreamReader::new(read_as(WireFormat::OpenAiChat, Keep::Facts));
    let mut passed = 0;
    for _ in 0..bytes {
        reader
            .feed(event.as_bytes(), &mut |delta| {
                if let spinney_drivers::wire::WireDelta::Text(text) = delta {
                    passed += text.len();
                }
            })
            .unwrap();
    }
    assert_eq!(passed, bytes * 512 * 1024);
}

#[test]
fn a_quarter_of_a_megabyte_of_arguments_in_small_pieces_is_read_whole() {
    let arguments = format!(r#"{{"text":"{}"}}"#, "0123456789abcdef".repeat(16 * 1024));
    let pieces: Vec<&str> =
        arguments.as_bytes().chunks(16).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    let chat = |arguments: &str| json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "n", "arguments": arguments } }] } }] });
    let anthropic = |arguments: &str| json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": arguments } });
    let responses = |arguments: &str| json!({ "type": "response.function_call_arguments.delta", "output_index": 0, "delta": arguments });
    let start = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "a", "name": "n", "input": {} } });
    let added = json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "function_call", "call_id": "a", "name": "n", "arguments": "" } });
    check(&arguments, &pieces, WireFormat::OpenAiChat, "{}", &chat);
    check(&arguments, &pieces, WireFormat::AnthropicMessages, &start.to_string(), &anthropic);
    check(&arguments, &pieces, WireFormat::OpenAiResponses, &added.to_string(), &responses);
}

fn check(arguments: &str, pieces: &[&str], format: WireFormat, start: &str, event: &dyn Fn(&str) -> Value) {
    let events: Vec<String> = std::iter::once(format!("data: {start}\n\n"))
        .chain(pieces.iter().map(|piece| format!("data: {}\n\n", event(piece))))
        .collect();
    let outcome = outcome(read_as(format, Keep::Everything), events.iter().map(String::as_bytes));
    assert_eq!(outcome.fault, None);
    assert_eq!(outcome.answer.calls[0].arguments, arguments);
    assert!(outcome.answer.calls[0].is_whole);
}
