//! `spinney show` for an agent of an outside program: its conversation, as the kept requests and responses have it.

use std::slice::from_ref;

use serde_json::{Value, json};

use crate::exec::{exec, ps, used};
use crate::test_folder::{Ended, TestFolder};
use crate::upstream::{Reply, Upstream};

/// A program that sends these bodies: `post PATH FILE`.
const POSTS: &str = r#"
export LC_ALL=C
post() {
  at=${ANTHROPIC_BASE_URL#http://}
  exec 3<>/dev/tcp/${at%:*}/${at#*:}
  body=$(cat "$2")
  printf 'POST %s HTTP/1.1\r\nhost: x\r\nx-api-key: %s\r\nauthorization: Bearer %s\r\nconnection: close\r\ncontent-length: %s\r\n\r\n%s' \
    "$1" "$ANTHROPIC_API_KEY" "$OPENAI_API_KEY" "${#body}" "$body" >&3
  cat <&3 >/dev/null
  exec 3>&-
}
"#;

/// The head of a response that is one JSON object.
fn whole(body: &Value) -> Reply {
    let body = body.to_string();
    Reply::Sent(format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// A stream of events with their types.
fn stream(events: &[Value]) -> Reply {
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"));
    Reply::recorded(&events.iter().map(event).collect::<String>())
}

/// Sends a request on a path, and returns the stage with its run.
fn sent(path: &str, requests: &[Value], replies: Vec<Reply>) -> TestFolder {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(replies));
    let mut script = POSTS.to_owned();
    for (number, request) in requests.iter().enumerate() {
        let file = stage.file(&format!("request-{number}.json"), &request.to_string());
        script += &format!("post {path} {file}\n");
    }
    let program = stage.file("program.sh", &script);
    let url = upstream.url.as_str();
    let environment = [
        ("ANTHROPIC_API_KEY", "sk-1"),
        ("ANTHROPIC_BASE_URL", url),
        ("OPENAI_API_KEY", "sk-2"),
        ("OPENAI_BASE_URL", url),
    ];
    let args = ["exec", "--budget-usd", "9", "--price", "m=0,1", "--", "bash", &program];
    let Ended { code, err, .. } = stage.play_in(&args, &environment).end();
    assert_eq!(code, Some(0), "{err}");
    assert!(!err.contains("got an error"), "{err}");
    stage
}

/// Role, sender, text and calls of each message.
fn messages(stage: &TestFolder) -> Vec<Value> {
    let lines = stage.spinney(&["show", "last", "main", "--json"]).json();
    let brief = |line: &Value| {
        for key in ["number", "category", "tokens", "place", "is_error"] {
            assert!(line.get(key).is_some(), "{key}: {line}");
        }
        json!([line["role"], line["from"], line["text"], line["asks"]])
    };
    lines.iter().map(brief).collect()
}

fn asks() -> Value {
    json!([{ "id": "t1", "tool": "look", "args": "{\"path\":\"a\"}" }])
}

/// What each of the formats below says.
fn expected() -> Vec<Value> {
    vec![
        json!(["system", null, "Be brief.", []]),
        json!(["user", null, "Look at a.", []]),
        json!(["assistant", null, "I look.", asks()]),
        json!(["tool", { "tool": "look" }, "it is empty", []]),
        json!(["assistant", null, "It is empty.", []]),
    ]
}

#[test]
fn a_conversation_in_anthropics_format_is_shown() {
    let request = json!({
        "model": "m", "max_tokens": 100, "system": [{ "type": "text", "text": "Be brief." }],
        "tools": [{ "name": "look", "input_schema": { "type": "object" } }],
        "messages": [
            { "role": "user", "content": "Look at a." },
            { "role": "assistant", "content": [
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "t1", "name": "look", "input": { "path": "a" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "t1", "content": [{ "type": "text", "text": "it is empty" }] },
            ] },
        ],
    });
    let usage = json!({ "input_tokens": 1, "output_tokens": 1 });
    let answer = json!({
        "type": "message", "id": "x", "role": "assistant", "model": "m", "stop_reason": "end_turn", "usage": usage,
        "content": [{ "type": "text", "text": "It is empty." }],
    });
    let stage = sent("/v1/messages", from_ref(&request), vec![whole(&answer)]);
    assert_eq!(messages(&stage), expected());
    insta::assert_snapshot!(stage.said(&["show", "last", "main"]), @r#"
    main of tree [id]: 1 call of an outside program
    5 messages, as of call 1 (anthropic/m)

    #1  system
        Be brief.

    #2  user
        Look at a.

    #3  assistant
        I look.
        calls look {"path":"a"}

    #4  tool · from look
        it is empty

    #5  assistant
        It is empty.
    "#);
    let mut streamed = request;
    streamed["stream"] = json!(true);
    let begun = json!({ "type": "message", "id": "x", "role": "assistant", "model": "m", "content": [], "usage": usage });
    let text = |text: &str| json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } });
    let events = [
        json!({ "type": "message_start", "message": begun }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        text("It is "),
        text("empty."),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ];
    assert_eq!(messages(&sent("/v1/messages", &[streamed], vec![stream(&events)])), expected());
}

#[test]
fn a_conversation_in_openais_chat_format_is_shown() {
    let call = json!({ "id": "t1", "type": "function", "function": { "name": "look", "arguments": "{\"path\":\"a\"}" } });
    let request = json!({
        "model": "m", "max_tokens": 100,
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "Look at a." }] },
            { "role": "assistant", "content": "I look.", "tool_calls": [call] },
            { "role": "tool", "tool_call_id": "t1", "content": "it is empty" },
        ],
    });
    let usage = json!({ "prompt_tokens": 1, "completion_tokens": 1 });
    let answer = json!({
        "id": "x", "object": "chat.completion", "model": "m", "usage": usage,
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "It is empty." } }],
    });
    let stage = sent("/v1/chat/completions", from_ref(&request), vec![whole(&answer)]);
    assert_eq!(messages(&stage), expected());
    let mut streamed = request;
    streamed["stream"] = json!(true);
    assert_eq!(
        messages(&sent("/v1/chat/completions", &[streamed], vec![Reply::says("It is empty.", &[])])),
        expected()
    );
}

#[test]
fn a_conversation_in_openais_responses_format_is_shown() {
    let request = json!({
        "model": "m", "max_output_tokens": 100, "instructions": "Be brief.",
        "input": [
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Look at a." }] },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] },
            { "type": "function_call", "call_id": "t1", "name": "look", "arguments": "{\"path\":\"a\"}" },
            { "type": "function_call_output", "call_id": "t1", "output": "it is empty" },
        ],
    });
    let usage = json!({ "input_tokens": 1, "output_tokens": 1 });
    let item = json!({
        "type": "message", "id": "i", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": "It is empty.", "annotations": [] }],
    });
    let answer = json!({
        "id": "x", "object": "response", "model": "m", "status": "completed", "output": [item], "usage": usage,
    });
    let stage = sent("/v1/responses", from_ref(&request), vec![whole(&answer)]);
    assert_eq!(messages(&stage), expected());
    let mut streamed = request;
    streamed["stream"] = json!(true);
    let events = [
        json!({ "type": "response.created", "response": { "id": "x", "model": "m", "status": "in_progress", "output": [] } }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "message", "id": "i", "role": "assistant", "content": [] } }),
        json!({ "type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "delta": "It is empty." }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": answer }),
    ];
    assert_eq!(messages(&sent("/v1/responses", &[streamed], vec![stream(&events)])), expected());
}

/// A call beside the conversation, such as one for a title, does not hide it: it offers no tools. G16 (terminal): escape
/// sequences in a text are written out. Long texts are cut without `--full`.
#[test]
fn g16_the_newest_call_with_tools_is_shown_and_its_text_is_inert() {
    let long = "x".repeat(5_000);
    let main = json!({
        "model": "m", "max_tokens": 100, "tools": [{ "name": "look", "input_schema": { "type": "object" } }],
        "messages": [{ "role": "user", "content": format!("\u{1b}[2J {long}") }],
    });
    let title =
        json!({ "model": "m", "max_tokens": 10, "messages": [{ "role": "user", "content": "a title" }] });
    let stage = sent("/v1/messages", &[main, title], vec![used(1)]);
    let shown = stage.spinney(&["show", "last", "main"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(shown.out.contains("\\u{1b}[2J xxx") && !shown.out.contains('\u{1b}'), "{}", shown.out);
    assert!(!shown.out.contains("a title") && shown.out.contains("--full"), "{}", shown.out);
    assert!(shown.out.len() < 2_000, "{}", shown.out);
    assert!(stage.spinney(&["show", "last", "main", "--full"]).out.contains(&long));
    // All calls with their bytes.
    let calls = stage.spinney(&["show", "last", "main", "--calls", "--json"]).json();
    assert_eq!(calls.len(), 2);
    assert!(calls[1]["request"].as_str().unwrap().contains("a title"));
    assert_eq!(calls[1]["cost_nanos"], json!(1_000));
}

#[test]
fn without_bodies_there_is_no_conversation_to_show() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10)]));
    let ended = exec(&stage, &upstream, &["--no-bodies"], "call 20 something").end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let shown = stage.spinney(&["show", "last", "main"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(shown.out.contains("no requests and responses were kept (--no-bodies)"), "{}", shown.out);
    assert_eq!(stage.spinney(&["show", "last", "main", "--json"]).out, "");
    assert_eq!(ps(&stage).len(), 1);
}
