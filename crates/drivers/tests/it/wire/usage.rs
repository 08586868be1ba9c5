//! Combining the usage of events: the most expensive consistent reading counts, and an answer without a final count or with
//! an unknown price has no usage.

use proptest::prelude::*;
use serde_json::{Value, json};
use spinney_drivers::wire::{
    Keep, ReadAs, ServedFrom, StreamEnd, StreamReader, UndividedWrites, WireFormat, WireUsage, read_whole,
};
use spinney_kernel::budget::{Price, Rates, Usage};
use spinney_kernel::primitives::Time;

use super::read_as;

fn read_events(read_as: ReadAs, events: &[Value]) -> WireUsage {
    let mut reader = StreamReader::new(read_as);
    for event in events {
        reader.feed(format!("data: {event}\n\n").as_bytes(), &mut |_| {}).unwrap();
    }
    let answer = reader.finish();
    assert_eq!(answer.end, StreamEnd::Whole);
    answer.usage
}

fn messages(undivided_writes: UndividedWrites) -> ReadAs {
    ReadAs { undivided_writes, ..read_as(WireFormat::AnthropicMessages, Keep::Facts) }
}

fn text_block() -> [Value; 3] {
    [
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "hi" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
    ]
}

/// A streamed message with this usage at its start and these at its end.
fn message(start: &Value, ends: &[Value]) -> Vec<Value> {
    let mut events = vec![json!({ "type": "message_start", "message": { "id": "m", "usage": start } })];
    events.extend(text_block());
    for usage in ends {
        events
            .push(json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": usage }));
    }
    events.push(json!({ "type": "message_stop" }));
    events
}

fn message_usage(undivided: UndividedWrites, start: &Value, end: &Value) -> WireUsage {
    read_events(messages(undivided), &message(start, std::slice::from_ref(end)))
}

fn counts(input: u64, cache_read: u64, minutes: u64, hour: u64, output: u64) -> WireUsage {
    WireUsage {
        input: Some(input),
        cache_read: Some(cache_read),
        cache_written_5m: Some(minutes),
        cache_written_1h: Some(hour),
        output: Some(output),
        ..WireUsage::default()
    }
}

fn divided(input: u64, cache_read: u64, minutes: u64, hour: u64, output: u64) -> Value {
    json!({
        "input_tokens": input,
        "cache_read_input_tokens": cache_read,
        "cache_creation_input_tokens": minutes + hour,
        "cache_creation": { "ephemeral_5m_input_tokens": minutes, "ephemeral_1h_input_tokens": hour },
        "output_tokens": output,
    })
}

#[test]
fn a_message_that_repeats_its_usage_is_read_as_it_says() {
    let start = divided(12, 4_000, 600, 300, 1);
    let same = json!({ "input_tokens": 12, "cache_read_input_tokens": 4_000, "cache_creation_input_tokens": 900, "output_tokens": 15 });
    for end in [json!({ "output_tokens": 15 }), divided(12, 4_000, 600, 300, 15), same] {
        for undivided in [UndividedWrites::Minutes, UndividedWrites::Hour] {
            assert_eq!(
                message_usage(undivided, &start, &end),
                counts(12, 4_000, 600, 300, 15),
                "{end} {undivided:?}"
            );
        }
    }
}

#[test]
fn no_count_of_a_message_shrinks() {
    let table = [
        ("input", divided(100, 0, 0, 0, 1), divided(7, 0, 0, 0, 5), counts(100, 0, 0, 0, 5)),
        ("output", divided(100, 0, 0, 0, 50), divided(100, 0, 0, 0, 5), counts(100, 0, 0, 0, 50)),
        ("reads", divided(10, 90, 0, 0, 1), divided(10, 40, 0, 0, 5), counts(60, 40, 0, 0, 5)),
        ("reads that grow", divided(10, 40, 0, 0, 1), divided(10, 90, 0, 0, 5), counts(60, 40, 0, 0, 5)),
        ("writes", divided(10, 0, 40, 50, 1), divided(10, 0, 0, 0, 5), counts(10, 0, 40, 50, 5)),
        ("longer writes", divided(10, 0, 90, 0, 1), divided(10, 0, 0, 90, 5), counts(0, 0, 10, 90, 5)),
        ("all of it", divided(10, 20, 30, 40, 9), divided(0, 0, 0, 0, 0), counts(30, 0, 30, 40, 9)),
    ];
    for (name, start, end, usage) in table {
        assert_eq!(message_usage(UndividedWrites::Minutes, &start, &end), usage, "{name}");
        let turned = message_usage(UndividedWrites::Minutes, &end, &start);
        assert_eq!(turned, usage, "{name}, the other way round");
    }
    let ends = [divided(9, 0, 0, 0, 30), divided(9, 0, 0, 0, 20), json!({ "output_tokens": 10 })];
    let usage = read_events(messages(UndividedWrites::Minutes), &message(&ends[0], &ends));
    assert_eq!(usage, counts(9, 0, 0, 0, 30), "several ends");
}

#[test]
fn a_count_that_an_event_leaves_out_is_not_zero() {
    let start = divided(3, 20, 0, 0, 1);
    let end = json!({ "input_tokens": 3, "output_tokens": 9 });
    assert_eq!(message_usage(UndividedWrites::Minutes, &start, &end), counts(3, 20, 0, 0, 9));
    let end = json!({ "input_tokens": 23, "output_tokens": 9 });
    let usage = message_usage(UndividedWrites::Minutes, &start, &end);
    assert_eq!(usage, counts(23, 20, 0, 0, 9), "the reads are beside them");
    // The count at the start is that of the first token.
    let usage = message_usage(UndividedWrites::Minutes, &start, &json!({ "input_tokens": 3 }));
    assert_eq!(usage.output, None);
}

#[test]
fn cache_writes_that_nobody_divides_last_an_hour_unless_the_request_could_not() {
    let start = json!({ "input_tokens": 3, "cache_creation_input_tokens": 100 });
    let partly = json!({
        "input_tokens": 3,
        "cache_creation_input_tokens": 100,
        "cache_creation": { "ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 10 },
    });
    let too_much = json!({
        "input_tokens": 3,
        "cache_creation_input_tokens": 5,
        "cache_creation": { "ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 10 },
    });
    let table = [
        (&start, UndividedWrites::Hour, (None, Some(100))),
        (&start, UndividedWrites::Minutes, (Some(100), None)),
        (&partly, UndividedWrites::Hour, (Some(30), Some(70))),
        (&partly, UndividedWrites::Minutes, (Some(90), Some(10))),
        (&too_much, UndividedWrites::Hour, (Some(30), Some(10))),
        (&too_much, UndividedWrites::Minutes, (Some(30), Some(10))),
    ];
    for (said, undivided, writes) in table {
        let usage = message_usage(undivided, said, &json!({ "output_tokens": 9 }));
        assert_eq!((usage.cache_written_5m, usage.cache_written_1h), writes, "{said} {undivided:?}");
        assert_eq!(usage.input, Some(3));
        let at_the_end = message_usage(undivided, &json!({ "input_tokens": 3 }), &{
            let mut end = said.clone();
            end["output_tokens"] = json!(9);
            end
        });
        assert_eq!(at_the_end, usage, "{said} {undivided:?}");
    }
    // A later event may divide what an earlier one only sums up.
    let end = divided(3, 0, 60, 40, 9);
    assert_eq!(message_usage(UndividedWrites::Hour, &start, &end), counts(3, 0, 60, 40, 9));
}

fn chunk(delta: &Value, usage: Option<&Value>) -> Value {
    let mut chunk = json!({ "id": "c", "choices": [{ "index": 0, "delta": delta }] });
    if let Some(usage) = usage {
        chunk["usage"] = usage.clone();
    }
    chunk
}

fn stop() -> Value {
    json!({ "id": "c", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] })
}

fn chat(events: &[Value]) -> WireUsage {
    read_events(read_as(WireFormat::CompatibleChat, Keep::Facts), events)
}

#[test]
fn chat_usage_before_the_last_output_is_not_final() {
    let (said, usage) = (json!({ "content": "hi" }), json!({ "prompt_tokens": 9, "completion_tokens": 2 }));
    let later = [
        json!({ "content": "more" }),
        json!({ "reasoning_content": "hm" }),
        json!({ "reasoning": "hm" }),
        json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "x" }] }),
        json!({ "refusal": "no" }),
        json!({ "function_call": { "name": "f", "arguments": "{}" } }),
        json!({ "something_new": "x" }),
        json!({ "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "f", "arguments": "{}" } }] }),
    ];
    for more in &later {
        let early = [chunk(&said, Some(&usage)), chunk(more, None), stop()];
        assert_eq!((chat(&early).input, chat(&early).output), (Some(9), None), "{more}");
        let groq = json!({ "id": "c", "choices": [], "x_groq": { "usage": usage } });
        let early = [chunk(&said, None), groq.clone(), chunk(more, None), stop()];
        assert_eq!(chat(&early).output, None, "{more}");
        // With or after the last output it counts.
        let with = [chunk(&said, None), chunk(more, Some(&usage)), stop()];
        assert_eq!(chat(&with).output, Some(2), "{more}");
        let after = [chunk(&said, None), chunk(more, None), stop(), groq];
        assert_eq!(chat(&after).output, Some(2), "{more}");
    }
    let other = json!({ "id": "c", "choices": [{ "index": 1, "delta": { "content": "another" } }] });
    assert_eq!(chat(&[chunk(&said, Some(&usage)), other, stop()]).output, None);
    let empty = chunk(&json!({ "role": "assistant", "content": "", "reasoning_details": [] }), None);
    assert_eq!(chat(&[chunk(&said, Some(&usage)), empty, stop()]).output, Some(2));
}

#[test]
fn chat_usage_in_every_chunk_grows_and_never_shrinks() {
    let usage = |input: u64, cached: u64, output: u64, reasoning: u64| {
        json!({
            "prompt_tokens": input,
            "completion_tokens": output,
            "prompt_tokens_details": { "cached_tokens": cached },
            "completion_tokens_details": { "reasoning_tokens": reasoning },
        })
    };
    let said = json!({ "content": "hi" });
    let read = |usages: &[Value]| {
        let mut events: Vec<Value> = usages.iter().map(|usage| chunk(&said, Some(usage))).collect();
        events.push(stop());
        let usage = chat(&events);
        (usage.input, usage.cache_read, usage.output, usage.reasoning)
    };
    let growing = [usage(30, 20, 4, 4), usage(30, 20, 9, 4), usage(30, 20, 12, 4)];
    assert_eq!(read(&growing), (Some(10), Some(20), Some(12), Some(4)));
    let shrinking = [usage(30, 20, 12, 4), usage(30, 25, 3, 0)];
    assert_eq!(read(&shrinking), (Some(10), Some(20), Some(12), Some(4)));
    let vague = [json!({ "prompt_tokens": 30, "completion_tokens": 9 }), usage(30, 20, 12, 10)];
    assert_eq!(read(&vague), (Some(10), Some(20), Some(12), Some(10)), "what is left out is not zero");
    let longer = [usage(50, 0, 12, 0), usage(30, 0, 12, 0)];
    assert_eq!(read(&longer), (Some(50), Some(0), Some(12), Some(0)));
}

fn responses(events: &[Value]) -> WireUsage {
    read_events(read_as(WireFormat::OpenAiResponses, Keep::Facts), events)
}

fn response(kind: &str, usage: &Value) -> Value {
    json!({ "type": format!("response.{kind}"), "response": { "id": "r", "usage": usage } })
}

fn said() -> Value {
    json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "hi" })
}

#[test]
fn usage_of_a_response_never_shrinks_and_counts_after_the_last_output() {
    let usage = |input: u64, output: u64| json!({ "input_tokens": input, "output_tokens": output });
    let counted = |events: &[Value]| {
        let usage = responses(events);
        (usage.input, usage.output)
    };
    let table = [
        (vec![said(), response("completed", &usage(30, 9))], (Some(30), Some(9))),
        (
            vec![response("in_progress", &usage(50, 20)), said(), response("completed", &usage(30, 9))],
            (Some(50), Some(20)),
        ),
        (
            vec![said(), response("incomplete", &usage(30, 9)), response("completed", &usage(1, 1))],
            (Some(30), Some(9)),
        ),
        (
            vec![response("created", &usage(50, 20)), said(), response("completed", &Value::Null)],
            (Some(50), None),
        ),
    ];
    for (events, expected) in table {
        assert_eq!(counted(&events), expected, "{events:?}");
    }
    let early = [response("in_progress", &usage(30, 9)), response("completed", &Value::Null)];
    assert_eq!(counted(&early), (Some(30), None), "a count at the beginning is not final");
}

/// Proxies send more after the last event: `[DONE]` in formats that do not have it, the output once more, an error. The
/// usage of the last event is final, so nothing of this takes it back; more usage can only raise it.
#[test]
fn g22_what_follows_the_last_event_takes_no_usage_back() {
    let error = json!({ "type": "error", "error": { "type": "server_error", "message": "x" } }).to_string();
    let both = ["[DONE]".to_owned(), " [DONE] ".to_owned(), "not JSON".to_owned(), error];
    let formats = [
        (
            WireFormat::AnthropicMessages,
            message(&json!({ "input_tokens": 30 }), &[json!({ "output_tokens": 9 })]),
            text_block().to_vec(),
            json!({ "type": "message_delta", "usage": { "input_tokens": 31, "output_tokens": 10 } }),
        ),
        (
            WireFormat::OpenAiResponses,
            vec![said(), response("completed", &json!({ "input_tokens": 30, "output_tokens": 9 }))],
            vec![
                said(),
                json!({ "type": "response.output_item.done", "output_index": 1, "item": { "type": "message",
                    "content": [{ "type": "output_text", "text": "hi" }] } }),
            ],
            response("completed", &json!({ "input_tokens": 31, "output_tokens": 10 })),
        ),
    ];
    for (format, events, more, dearer) in formats {
        let read = |last: &[String]| {
            let mut reader = StreamReader::new(read_as(format, Keep::Everything));
            for data in events.iter().map(Value::to_string).chain(last.iter().cloned()) {
                reader.feed(format!("data: {data}\n\n").as_bytes(), &mut |_| {}).unwrap();
            }
            // Bytes that no stream has.
            reader.feed(b"\xff\n", &mut |_| {}).unwrap();
            reader.feed(b"data: [DONE]\n\n", &mut |_| {}).unwrap();
            reader.finish()
        };
        let alone = read(&[]);
        assert_eq!((alone.end, alone.text.as_str()), (StreamEnd::Whole, "hi"), "{format:?}");
        assert_eq!((alone.usage.input, alone.usage.output), (Some(30), Some(9)), "{format:?}");
        for last in &both {
            assert_eq!(read(std::slice::from_ref(last)), alone, "{format:?} and {last}");
        }
        let more: Vec<String> = more.iter().map(Value::to_string).collect();
        assert_eq!(read(&more), alone, "{format:?} and output");
        let raised = read(&[dearer.to_string()]).usage;
        assert_eq!((raised.input, raised.output), (Some(31), Some(10)), "{format:?}");
    }
    // Without a last event it ends nothing.
    for format in [WireFormat::AnthropicMessages, WireFormat::OpenAiResponses, WireFormat::Gemini] {
        let mut reader = StreamReader::new(read_as(format, Keep::Facts));
        reader.feed(b"data: [DONE]\n\n", &mut |_| {}).unwrap();
        assert_eq!(reader.finish().end, StreamEnd::Cut, "{format:?}");
    }
}

/// A chunk of Gemini that may be the last one.
fn part(text: &str, prompt: u64, cached: u64, said: u64) -> Value {
    json!({
        "candidates": [{ "content": { "parts": [{ "text": text }] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": prompt, "cachedContentTokenCount": cached, "candidatesTokenCount": said },
    })
}

#[test]
fn usage_of_gemini_never_shrinks() {
    let read = |events: &[Value]| {
        let usage = read_events(read_as(WireFormat::Gemini, Keep::Facts), events);
        (usage.input, usage.cache_read, usage.output)
    };
    assert_eq!(read(&[part("a", 9, 4, 1), part("b", 9, 4, 2)]), (Some(5), Some(4), Some(2)));
    assert_eq!(read(&[part("a", 9, 4, 7), part("b", 3, 3, 2)]), (Some(6), Some(3), Some(7)));
    let uncounted = json!({ "candidates": [{ "content": { "parts": [{ "text": "more" }] } }] });
    assert_eq!(read(&[part("a", 9, 4, 1), uncounted]), (Some(5), Some(4), None));
    // A count of 0 is left out.
    let counted = |counts: Value| json!({ "usageMetadata": counts });
    let uncached = counted(json!({ "promptTokenCount": 9, "candidatesTokenCount": 1 }));
    assert_eq!(read(&[part("a", 9, 9, 1), uncached]), (Some(9), Some(0), Some(1)));
    let thought = counted(json!({ "promptTokenCount": 9, "thoughtsTokenCount": 500 }));
    assert_eq!(read(&[thought, part("a", 9, 0, 20)]).2, Some(520));
}

#[test]
fn what_gemini_ran_or_counted_otherwise_has_no_known_price() {
    let is_unknown =
        |events: &[Value]| read_events(read_as(WireFormat::Gemini, Keep::Facts), events).has_unknown_price;
    let counts = |key: &str, details: Value| {
        let mut end = part("a", 9, 0, 1);
        end["usageMetadata"][key] = details;
        end
    };
    let answer = |more: Value| {
        let mut end = part("a", 9, 0, 1);
        end["candidates"][0].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        end
    };
    let audio = json!({ "modality": "AUDIO", "tokenCount": 5 });
    for key in
        ["promptTokensDetails", "cacheTokensDetails", "toolUsePromptTokensDetails", "candidatesTokensDetails"]
    {
        assert!(is_unknown(&[counts(key, json!([audio]))]), "{key}");
        assert!(is_unknown(&[counts(key, audio.clone())]), "{key}");
        assert!(!is_unknown(&[counts(key, json!([{ "modality": "TEXT", "tokenCount": 5 }]))]), "{key}");
    }
    for more in [
        json!({ "groundingMetadata": { "webSearchQueries": ["x"] } }),
        json!({ "urlContextMetadata": { "urlMetadata": [] } }),
        json!({ "content": { "parts": [{ "executableCode": { "code": "1" } }] } }),
        json!({ "content": { "parts": [{ "codeExecutionResult": { "output": "1" } }] } }),
    ] {
        assert!(is_unknown(&[answer(more.clone())]), "{more}");
    }
    assert!(!is_unknown(&[answer(json!({ "groundingMetadata": {} }))]));
}

#[test]
fn searches_are_billed_apart_and_other_tools_of_a_provider_have_no_known_price() {
    let tools = |from: ServedFrom, tools: Value| {
        let end = json!({ "output_tokens": 9, "server_tool_use": tools });
        let read_as = ReadAs { served_from: from, ..messages(UndividedWrites::Minutes) };
        let usage = read_events(read_as, &message(&json!({ "input_tokens": 3 }), &[end]));
        (usage.apart_nanos, usage.has_unknown_price)
    };
    let table = [
        (json!(null), (0, false)),
        (json!({}), (0, false)),
        (
            json!({ "web_search_requests": 0, "web_fetch_requests": 0, "code_execution_requests": 0 }),
            (0, false),
        ),
        (json!({ "web_search_requests": 3, "web_fetch_requests": 2 }), (30_000_000, false)),
        (json!({ "web_search_requests": 3, "code_execution_requests": 1 }), (30_000_000, true)),
        (json!({ "web_search_requests": -1 }), (0, true)),
        (json!({ "web_search_requests": "many" }), (0, true)),
        (json!([1]), (0, true)),
    ];
    for (said, expected) in table {
        assert_eq!(tools(ServedFrom::Provider, said.clone()), expected, "{said}");
    }
    assert_eq!(tools(ServedFrom::Elsewhere, json!({ "web_search_requests": 1 })), (0, true));
    // A search that the usage does not count.
    let mut events = message(&json!({ "input_tokens": 3 }), &[json!({ "output_tokens": 9 })]);
    let search = json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} });
    events.insert(1, json!({ "type": "content_block_start", "index": 9, "content_block": search }));
    assert!(read_events(messages(UndividedWrites::Minutes), &events).has_unknown_price);
}

#[test]
fn dearer_tiers_have_no_known_price() {
    let messages_tier = |name: &str, value: Value| {
        let mut start = json!({ "input_tokens": 3 });
        start[name] = value;
        message_usage(UndividedWrites::Minutes, &start, &json!({ "output_tokens": 9 })).has_unknown_price
    };
    let table = [
        ("service_tier", json!("standard"), false),
        ("service_tier", json!("batch"), false),
        ("service_tier", json!(null), false),
        ("service_tier", json!("priority"), true),
        ("service_tier", json!("gold"), true),
        ("service_tier", json!(7), true),
        ("speed", json!("standard"), false),
        ("speed", json!("fast"), true),
        ("inference_geo", json!("global"), false),
        ("inference_geo", json!("not_available"), false),
        ("inference_geo", json!("us"), true),
    ];
    for (name, value, is_dearer) in table {
        assert_eq!(messages_tier(name, value.clone()), is_dearer, "{name} {value}");
    }
    for (tier, is_dearer) in [("default", false), ("flex", false), ("priority", true)] {
        let usage = json!({ "input_tokens": 3, "output_tokens": 9 });
        let mut end = response("completed", &usage);
        end["response"]["service_tier"] = json!(tier);
        assert_eq!(responses(&[said(), end]).has_unknown_price, is_dearer, "{tier}");
        let mut first = chunk(&json!({ "content": "hi" }), None);
        first["service_tier"] = json!(tier);
        assert_eq!(chat(&[first, stop()]).has_unknown_price, is_dearer, "{tier}");
    }
}

#[test]
fn tools_that_a_provider_runs_in_a_response_have_no_known_price() {
    let usage = json!({ "input_tokens": 3, "output_tokens": 9 });
    let table = [
        ("web_search_call", true),
        ("file_search_call", true),
        ("code_interpreter_call", true),
        ("image_generation_call", true),
        ("mcp_call", true),
        ("mcp_list_tools", true),
        ("teleport_call", true),
        ("function_call", false),
        ("custom_tool_call", false),
        ("local_shell_call", false),
        ("message", false),
        ("reasoning", false),
    ];
    for (kind, is_unknown) in table {
        let item = json!({ "type": kind, "name": "f", "call_id": "c", "arguments": "{}" });
        let added = json!({ "type": "response.output_item.added", "output_index": 0, "item": item });
        let done = json!({ "type": "response.output_item.done", "output_index": 0, "item": item });
        let mut whole = response("completed", &usage);
        whole["response"]["output"] = json!([item]);
        for events in [
            vec![added, said(), response("completed", &usage)],
            vec![done, said(), response("completed", &usage)],
            vec![said(), whole.clone()],
        ] {
            assert_eq!(responses(&events).has_unknown_price, is_unknown, "{kind} {events:?}");
        }
        let body = json!({ "id": "r", "status": "completed", "output": [item], "usage": usage }).to_string();
        let read_as = read_as(WireFormat::OpenAiResponses, Keep::Facts);
        let answer = read_whole(&read_as, &body, &mut |_| {}).unwrap();
        assert_eq!((answer.usage.has_unknown_price, answer.usage.output), (is_unknown, Some(9)), "{kind}");
    }
    let searching = json!({ "type": "response.web_search_call.searching", "output_index": 0 });
    assert!(responses(&[searching, response("completed", &usage)]).has_unknown_price);
    let mut counted = response("completed", &usage);
    counted["response"]["tool_usage"] = json!({ "web_search": { "num_requests": 1 } });
    assert!(responses(&[said(), counted.clone()]).has_unknown_price);
    counted["response"]["tool_usage"] = json!({ "web_search": { "num_requests": 0 } });
    assert!(!responses(&[said(), counted]).has_unknown_price);
}

#[test]
fn a_cost_that_a_provider_reports_is_read_in_every_format() {
    let money = |usage: WireUsage| (usage.reported_nanos, usage.has_unknown_price);
    for (cost, expected) in [
        ("1.2e-05", (Some(12_000), false)),
        ("0", (Some(0), false)),
        ("-1", (None, true)),
        ("\"1\"", (None, true)),
    ] {
        let cost: Value = serde_json::from_str(cost).unwrap();
        let end = json!({ "output_tokens": 9, "cost": cost });
        let usage = message_usage(UndividedWrites::Minutes, &json!({ "input_tokens": 3 }), &end);
        assert_eq!(money(usage), expected, "{cost}");
        let usage = json!({ "prompt_tokens": 3, "completion_tokens": 9, "cost": cost });
        assert_eq!(
            money(chat(&[chunk(&json!({ "content": "hi" }), Some(&usage)), stop()])),
            expected,
            "{cost}"
        );
        let usage = json!({ "input_tokens": 3, "output_tokens": 9, "cost": cost });
        assert_eq!(money(responses(&[said(), response("completed", &usage)])), expected, "{cost}");
    }
    // It does not shrink, and it has the tools of its server in it.
    let usage = |cost: f64| json!({ "prompt_tokens": 3, "completion_tokens": 9, "cost": cost, "server_tool_use": { "web_search_requests": 1 } });
    let content = json!({ "content": "hi" });
    let events = [chunk(&content, Some(&usage(0.5))), chunk(&content, Some(&usage(0.25))), stop()];
    assert_eq!(money(chat(&events)), (Some(500_000_000), false));
    let uncosted = json!({ "prompt_tokens": 3, "completion_tokens": 9, "server_tool_use": { "web_search_requests": 1 } });
    assert_eq!(money(chat(&[chunk(&content, Some(&uncosted)), stop()])), (None, true));
}

#[test]
fn several_calls_of_the_model_in_one_answer_are_added_up() {
    let read = |iterations: Value| {
        let end = json!({ "input_tokens": 23, "output_tokens": 10, "iterations": iterations });
        message_usage(UndividedWrites::Minutes, &json!({ "input_tokens": 23 }), &end)
    };
    let call = |kind: &str, input: u64, output: u64| json!({ "type": kind, "input_tokens": input, "output_tokens": output });
    let tokens =
        |input, output| WireUsage { input: Some(input), output: Some(output), ..WireUsage::default() };
    assert_eq!(read(json!(null)), tokens(23, 10));
    assert_eq!(read(json!([])), tokens(23, 10));
    assert_eq!(read(json!([call("message", 23, 10)])), tokens(23, 10));
    assert_eq!(read(json!([call("compaction", 180, 35), call("message", 23, 10)])), tokens(203, 45));
    assert_eq!(read(json!([call("message", 3, 1)])), tokens(23, 10), "nothing shrinks");
    for nonsense in [json!(7), json!(["x"]), json!([call("advisor_message", 1, 1)])] {
        assert!(read(nonsense.clone()).has_unknown_price, "{nonsense}");
    }
    let models = json!([
        { "type": "message", "model": "a", "input_tokens": 1, "output_tokens": 1 },
        { "type": "message", "model": "b", "input_tokens": 1, "output_tokens": 1 },
    ]);
    assert!(read(models).has_unknown_price);
}

#[test]
fn an_error_in_place_of_an_answer_is_told_from_one_in_its_middle() {
    let end = |events: &[Value]| {
        let mut reader = StreamReader::new(messages(UndividedWrites::Minutes));
        let fed =
            events.iter().map(|event| reader.feed(format!("data: {event}\n\n").as_bytes(), &mut |_| {}));
        assert!(fed.last().unwrap().is_err());
        reader.finish().end
    };
    let error = |kind: &str| json!({ "type": "error", "error": { "type": kind, "message": "x" } });
    let start = json!({ "type": "message_start", "message": { "usage": { "input_tokens": 3 } } });
    assert_eq!(end(&[error("overloaded_error")]), StreamEnd::Refused);
    assert_eq!(end(&[json!({ "type": "ping" }), error("api_error")]), StreamEnd::Refused);
    assert_eq!(end(&[error("something_else")]), StreamEnd::Cut);
    assert_eq!(end(&[start, error("overloaded_error")]), StreamEnd::Cut);
}

/// The usage in one event of a message, as the kernel would book it.
#[derive(Clone, Debug)]
struct Said {
    input: Option<u64>,
    read: Option<u64>,
    /// All cache writes, divided or not.
    written: Option<u64>,
    minutes: Option<u64>,
    hour: Option<u64>,
    output: Option<u64>,
    searches: u64,
    cost: Option<u64>,
}

fn any_said() -> impl Strategy<Value = Said> {
    let tokens = || prop::option::weighted(0.8, 0..2_000_u64);
    let divided = prop::option::of((tokens(), tokens())).prop_map(Option::unwrap_or_default);
    let counts = (tokens(), tokens(), tokens(), divided, tokens());
    (counts, 0..3_u64, prop::option::of(0..40_000_u64)).prop_map(
        |((input, read, written, (minutes, hour), output), searches, cost)| Said {
            input,
            read,
            written,
            minutes,
            hour,
            output,
            searches,
            cost,
        },
    )
}

impl Said {
    /// As Anthropic writes it.
    fn message(&self) -> Value {
        let mut usage = json!({ "server_tool_use": { "web_search_requests": self.searches } });
        for (name, count) in [
            ("input_tokens", self.input),
            ("cache_read_input_tokens", self.read),
            ("cache_creation_input_tokens", self.written),
            ("output_tokens", self.output),
        ] {
            if let Some(count) = count {
                usage[name] = json!(count);
            }
        }
        for (name, count) in
            [("ephemeral_5m_input_tokens", self.minutes), ("ephemeral_1h_input_tokens", self.hour)]
        {
            if let Some(count) = count {
                usage["cache_creation"][name] = json!(count);
            }
        }
        if let Some(nanos) = self.cost {
            usage["cost"] = serde_json::from_str(&format!("{nanos}e-9")).unwrap();
        }
        usage
    }

    const fn divides(&self) -> bool {
        self.minutes.is_some() || self.hour.is_some()
    }

    /// What it says alone. Writes that it does not divide are cheap if another event divides them.
    fn usage(&self, undivided: UndividedWrites) -> Usage {
        let [mut minutes, mut hour] = [self.minutes, self.hour].map(Option::unwrap_or_default);
        let rest = self.written.unwrap_or(0).saturating_sub(minutes + hour);
        match undivided {
            UndividedWrites::Minutes => minutes += rest,
            UndividedWrites::Hour => hour += rest,
        }
        Usage {
            input: self.input.unwrap_or(0),
            cached_input: self.read.unwrap_or(0),
            cache_write: minutes,
            cache_write_1h: hour,
            output: self.output.unwrap_or(0),
            reasoning: 0,
            reported_nanos: self.cost.unwrap_or(0),
            apart_nanos: self.searches * 10_000_000,
        }
    }
}

/// Prices that begin with reading a cache and end with writing one for an hour.
fn any_price() -> impl Strategy<Value = Price> {
    (prop::array::uniform4(0..30_000_000_000_u64), 0..90_000_000_000_u64, 0..90_000_000_000_u64).prop_map(
        |(mut input, output, reasoning)| {
            input.sort_unstable();
            let [read, fresh, minutes, hour] = input;
            Price::from(Rates {
                input_per_mtok: fresh,
                output_per_mtok: output,
                cached_input_per_mtok: Some(read),
                cache_write_per_mtok: Some(minutes),
                cache_write_1h_per_mtok: Some(hour),
                reasoning_per_mtok: Some(reasoning),
            })
        },
    )
}

fn booked(usage: &WireUsage) -> Usage {
    let (output, reasoning) = (usage.output.unwrap_or(0), usage.reasoning.unwrap_or(0));
    Usage {
        input: usage.input.unwrap_or(0),
        cached_input: usage.cache_read.unwrap_or(0),
        cache_write: usage.cache_written_5m.unwrap_or(0),
        cache_write_1h: usage.cache_written_1h.unwrap_or(0),
        output: output.saturating_sub(reasoning),
        reasoning: reasoning.min(output),
        reported_nanos: usage.reported_nanos.unwrap_or(0),
        apart_nanos: usage.apart_nanos,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever a server says in whichever order, what is booked costs at least as much as what any event says alone.
    #[test]
    fn a_message_is_booked_at_no_less_than_any_of_its_events(
        said in prop::collection::vec(any_said(), 1..6),
        price in any_price(),
    ) {
        let usages: Vec<Value> = said.iter().map(Said::message).collect();
        let usage = read_events(messages(UndividedWrites::Hour), &message(&usages[0], &usages));
        let is_known = said.iter().any(|said| said.output.is_some()) && said.iter().any(|said| said.input.is_some());
        prop_assert_eq!(usage.input.is_some() && usage.output.is_some(), is_known);
        if is_known {
            let cost = price.cost(&booked(&usage), Time(0));
            let undivided =
                if said.iter().any(Said::divides) { UndividedWrites::Minutes } else { UndividedWrites::Hour };
            for one in &said {
                let alone = price.cost(&one.usage(undivided), Time(0));
                prop_assert!(cost >= alone, "{:?} is less than {:?}", usage, one);
            }
        }
    }

    /// The same for a server that counts in every chunk.
    #[test]
    fn a_chat_is_booked_at_no_less_than_any_of_its_chunks(
        said in prop::collection::vec((0..2_000_u64, 0..2_000_u64, 0..2_000_u64, 0..2_000_u64), 1..6),
        price in any_price(),
    ) {
        // Input, of which some is cached, and output, of which some is reasoning.
        let said: Vec<Usage> = said
            .into_iter()
            .map(|(input, cached_input, output, reasoning)| Usage { input, cached_input, output, reasoning, ..Usage::default() })
            .collect();
        let mut events: Vec<Value> = said
            .iter()
            .map(|usage| {
                let usage = json!({
                    "prompt_tokens": usage.input_tokens(),
                    "completion_tokens": usage.output_tokens(),
                    "prompt_tokens_details": { "cached_tokens": usage.cached_input },
                    "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
                });
                chunk(&json!({ "content": "hi" }), Some(&usage))
            })
            .collect();
        events.push(stop());
        let cost = price.cost(&booked(&chat(&events)), Time(0));
        for one in &said {
            prop_assert!(cost >= price.cost(one, Time(0)), "{:?}", one);
        }
    }
}
