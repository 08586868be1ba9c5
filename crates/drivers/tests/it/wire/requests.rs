//! Requests, as each provider reads them.

use serde_json::{Number, Value, json};
use spinney_drivers::wire::{
    BodyError, CacheTime, StructuredOutput, Thinking, WireFormat, WireMessage, WireParams, WirePart,
    WireRequest, WireTool, WireToolCall, write,
};

use super::folder;

fn call(id: &str, name: &str, arguments: &str) -> WireToolCall {
    WireToolCall { id: id.into(), name: name.into(), arguments: arguments.into(), is_whole: true }
}

fn result(id: &str, tool: &str, text: &str) -> WireMessage {
    WireMessage::Result {
        id: id.into(),
        tool: tool.into(),
        text: text.into(),
        is_error: false,
        parts: Vec::new(),
    }
}

/// A dialog with everything in it.
fn dialog() -> WireRequest {
    let image = WirePart::Image { media: "image/png".into(), bytes: b"\x89PNG".to_vec() };
    let pdf =
        WirePart::File { name: "a.pdf".into(), media: "application/pdf".into(), bytes: b"%PDF".to_vec() };
    let notes = WirePart::File { name: "a.txt".into(), media: "text/plain".into(), bytes: b"notes".to_vec() };
    let zip = WirePart::File { name: "a.zip".into(), media: "application/zip".into(), bytes: b"PK".to_vec() };
    let asked = vec![call("call_1", "read_file", r#"{"path": "a.txt"}"#), call("call:2", "list_files", "")];
    let failed = WireMessage::Result {
        id: "call:2".into(),
        tool: "list_files".into(),
        text: "no such folder".into(),
        is_error: true,
        parts: vec![image.clone()],
    };
    WireRequest {
        model: "some-model".into(),
        system: "You are careful.".into(),
        system_shared_bytes: 0,
        messages: vec![
            WireMessage::User(vec![WirePart::Text("Look at these.".into()), image, pdf, notes, zip]),
            WireMessage::Assistant { text: "I look.".into(), calls: asked, continuation: None },
            result("call_1", "read_file", "notes"),
            failed,
            WireMessage::User(vec![WirePart::Text("Go on.".into())]),
            WireMessage::Assistant {
                text: String::new(),
                calls: vec![call("c3", "now", "not json")],
                continuation: None,
            },
            result("c3", "now", ""),
        ],
        tools: vec![
            WireTool {
                name: "read_file".into(),
                description: "Reads.".into(),
                schema: r#"{"type":"object","properties":{"path":{"type":"string"}}}"#.into(),
            },
            WireTool { name: "now".into(), description: "The time.".into(), schema: String::new() },
        ],
        output_cap: 2_000,
        params: WireParams::default(),
    }
}

/// The body, one member per line.
fn written(format: WireFormat, request: &WireRequest) -> String {
    let body: Value = serde_json::from_slice(&write(format, request).unwrap()).unwrap();
    serde_json::to_string_pretty(&body).unwrap()
}

#[test]
fn a_dialog_with_everything_is_written_as_reviewed() {
    for format in WireFormat::ALL {
        insta::assert_snapshot!(format!("request_{}", folder(format)), written(format, &dialog()));
    }
}

/// The first turn of an agent has its task in the system text and no message. Providers refuse an empty dialog, and most
/// want the user to begin; the second turn begins with the same bytes.
#[test]
fn a_dialog_that_nobody_began_is_begun_for_the_user() {
    let said = WireMessage::Assistant { text: "I look.".into(), calls: Vec::new(), continuation: None };
    let body = |format, messages| -> Value {
        let request = WireRequest {
            model: "m".into(),
            system: "Your task.".into(),
            messages,
            ..WireRequest::default()
        };
        let body: Value = serde_json::from_slice(&write(format, &request).unwrap()).unwrap();
        let texts = ["system", "systemInstruction", "instructions", "messages", "contents", "input"];
        texts.iter().filter_map(|name| Some(((*name).to_owned(), body.get(name)?.clone()))).collect()
    };
    let task = json!({ "role": "system", "content": "Your task." });
    let developer = json!([{ "type": "input_text", "text": "Your task." }]);
    for (format, dialog, first, second) in [
        (
            WireFormat::OpenAiChat,
            "messages",
            json!({ "messages": [task] }),
            json!({ "role": "assistant", "content": "I look." }),
        ),
        (
            WireFormat::CompatibleChat,
            "messages",
            json!({ "messages": [task, { "role": "user", "content": "Begin." }] }),
            json!({ "role": "assistant", "content": "I look." }),
        ),
        (
            WireFormat::OpenAiResponses,
            "input",
            json!({ "input": [{ "type": "message", "role": "developer", "content": developer }] }),
            json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] }),
        ),
        (
            WireFormat::AnthropicMessages,
            "messages",
            json!({
                "system": [{ "type": "text", "text": "Your task." }],
                "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Begin." }] }],
            }),
            json!({ "role": "assistant", "content": [{ "type": "text", "text": "I look." }] }),
        ),
        (
            WireFormat::Gemini,
            "contents",
            json!({
                "systemInstruction": { "parts": [{ "text": "Your task." }] },
                "contents": [{ "role": "user", "parts": [{ "text": "Begin." }] }],
            }),
            json!({ "role": "model", "parts": [{ "text": "I look." }] }),
        ),
    ] {
        assert_eq!(body(format, Vec::new()), first, "{format:?}");
        let mut both = first;
        both[dialog].as_array_mut().unwrap().push(second);
        assert_eq!(body(format, vec![said.clone()]), both, "{format:?}");
    }
}

fn plain(params: WireParams) -> WireRequest {
    let messages = vec![WireMessage::User(vec![WirePart::Text("hi".into())])];
    WireRequest { model: "m".into(), messages, output_cap: 2_000, params, ..WireRequest::default() }
}

#[test]
fn parameters_are_written_in_each_provider_s_words() {
    let common = WireParams {
        temperature: Some(Number::from(1)),
        top_p: Some(Number::from(0)),
        effort: Some("low".into()),
        ..WireParams::default()
    };
    let structured = Some(StructuredOutput {
        name: "answer".into(),
        schema: r#"{"type":"object"}"#.into(),
        is_strict: false,
    });
    let body = |format, params| String::from_utf8(write(format, &plain(params)).unwrap()).unwrap();
    let stop = vec!["END".to_owned()];
    let seeded =
        WireParams { seed: Some(7), stop: stop.clone(), structured: structured.clone(), ..common.clone() };
    insta::assert_snapshot!(body(WireFormat::OpenAiChat, seeded.clone()), @r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":2000,"temperature":1,"top_p":0,"stop":["END"],"seed":7,"reasoning_effort":"low","response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"},"strict":false}},"stream":true,"stream_options":{"include_usage":true}}"#);
    insta::assert_snapshot!(body(WireFormat::OpenAiResponses, WireParams { structured: structured.clone(), ..common.clone() }), @r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],"max_output_tokens":2000,"temperature":1,"top_p":0,"reasoning":{"effort":"low"},"text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object"},"strict":false}},"store":false,"include":["reasoning.encrypted_content"],"stream":true}"#);
    let cached = WireParams {
        stop,
        structured,
        cache: Some(CacheTime::Hour),
        thinking: Some(Thinking::Adaptive),
        ..common
    };
    insta::assert_snapshot!(body(WireFormat::AnthropicMessages, cached), @r#"{"model":"m","max_tokens":2000,"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral","ttl":"1h"}}]}],"temperature":1,"top_p":0,"stop_sequences":["END"],"thinking":{"type":"adaptive"},"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}},"stream":true}"#);
    insta::assert_snapshot!(body(WireFormat::Gemini, WireParams { thinking: Some(Thinking::Budget(9_000)), ..seeded }), @r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"maxOutputTokens":2000,"temperature":1,"topP":0,"stopSequences":["END"],"seed":7,"responseMimeType":"application/json","responseJsonSchema":{"type":"object"},"thinkingConfig":{"thinkingLevel":"low","thinkingBudget":2000,"includeThoughts":true}}}"#);
}

#[test]
fn a_parameter_without_a_word_is_refused() {
    let seed = WireParams { seed: Some(1), ..WireParams::default() };
    let stop = WireParams { stop: vec!["x".into()], ..WireParams::default() };
    let thinking = WireParams { thinking: Some(Thinking::Budget(5_000)), ..WireParams::default() };
    let table = [
        (WireFormat::OpenAiChat, thinking.clone(), "thinking_budget"),
        (WireFormat::CompatibleChat, thinking.clone(), "thinking_budget"),
        (WireFormat::OpenAiResponses, thinking, "thinking_budget"),
        (WireFormat::OpenAiResponses, seed.clone(), "seed"),
        (WireFormat::OpenAiResponses, stop, "stop"),
        (WireFormat::AnthropicMessages, seed, "seed"),
    ];
    for (format, params, expected) in table {
        match write(format, &plain(params)) {
            Err(BodyError::Unsupported { param, .. }) => assert_eq!(param, expected),
            other => panic!("{format:?}: {other:?}"),
        }
    }
}

#[test]
fn a_thinking_budget_is_always_below_the_cap() {
    for (budget, cap, expected) in
        [(31_999, 32_000, Some(31_999)), (31_999, 5_000, Some(4_999)), (5_000, 1_024, None)]
    {
        let params = WireParams { thinking: Some(Thinking::Budget(budget)), ..WireParams::default() };
        let request = WireRequest { output_cap: cap, ..plain(params) };
        let body: Value =
            serde_json::from_slice(&write(WireFormat::AnthropicMessages, &request).unwrap()).unwrap();
        assert_eq!(body["thinking"]["budget_tokens"].as_u64(), expected);
        assert_eq!(body["max_tokens"].as_u64(), Some(cap));
    }
}

#[test]
fn a_last_call_without_tools_names_the_tools_that_were_called() {
    let request = WireRequest { tools: Vec::new(), ..dialog() };
    let body: Value =
        serde_json::from_slice(&write(WireFormat::AnthropicMessages, &request).unwrap()).unwrap();
    let names: Vec<&str> =
        body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["list_files", "now", "read_file"]);
    assert_eq!(body["tool_choice"]["type"], "none");
}

#[test]
fn a_dialog_that_begins_with_the_model_gets_a_beginning() {
    let mut request = dialog();
    request.messages.remove(0);
    for (format, list) in [(WireFormat::AnthropicMessages, "messages"), (WireFormat::Gemini, "contents")] {
        let body: Value = serde_json::from_slice(&write(format, &request).unwrap()).unwrap();
        assert_eq!(body[list][0]["role"], "user", "{format:?}");
    }
}

#[test]
fn a_schema_that_is_no_json_is_refused_by_name() {
    let mut request = dialog();
    request.tools[1].schema = "{".into();
    for format in WireFormat::ALL {
        let refused = write(format, &request).unwrap_err();
        assert_eq!(refused.to_string(), "the schema of `now` is not JSON");
    }
}
