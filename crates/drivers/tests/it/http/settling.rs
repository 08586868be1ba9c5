//! What an attempt came to, as the kernel hears it: every kind of failure, and what each has used.

use std::sync::{Arc, Mutex};

use spinney_drivers::http::ModelKey;
use spinney_drivers::providers::{Provider, ProviderClients, ProviderModel, ProviderSetup};
use spinney_drivers::wire::{WireFormat, WireParams};
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::context::Message;
use spinney_kernel::definition::OnLost;
use spinney_kernel::port::model::{Missed, Model, ModelAnswer, ModelAttempt, StopReason};
use spinney_kernel::words::{By, Category, FaultKind};

use super::super::wire::{KEY, stream};
use super::SHORT;
use super::upstream::{Step, Upstream};
use crate::scene::{attempt, packet};

fn model(provider: Provider, base_url: &str) -> ProviderModel {
    let setup = ProviderSetup {
        provider,
        model: "asked".to_owned(),
        base_url: Some(base_url.to_owned()),
        key: Some(ModelKey::new(KEY.to_owned())),
        headers: Vec::new(),
        params: WireParams::default(),
    };
    ProviderModel::new(setup, &ProviderClients::new(SHORT).unwrap()).unwrap()
}

/// One attempt, and what was streamed.
async fn called(provider: Provider, base_url: &str) -> (Result<ModelAnswer, Missed>, String) {
    let hello =
        Message::Heard { from: By::Person, text: "hi".into(), category: Category::Dialog, along: None };
    let attempt = ModelAttempt { packet: packet(vec![hello]), output_cap: 100, ..attempt() };
    let streamed = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&streamed);
    let deltas = Arc::new(move |text: &str| heard.lock().unwrap().push_str(text));
    let answer = model(provider, base_url).call(Arc::new(attempt), deltas).await;
    let streamed = streamed.lock().unwrap().clone();
    (answer, streamed)
}

async fn missed(upstream: &Upstream) -> Missed {
    called(Provider::OpenAiCompatible, &upstream.url).await.0.unwrap_err()
}

#[tokio::test]
async fn every_provider_answers_with_text_usage_and_a_reason() {
    let table = [
        (Provider::OpenAi, WireFormat::OpenAiResponses),
        (Provider::OpenAiChat, WireFormat::OpenAiChat),
        (Provider::Anthropic, WireFormat::AnthropicMessages),
        (Provider::Gemini, WireFormat::Gemini),
        (Provider::Ollama, WireFormat::OpenAiChat),
        (Provider::OpenAiCompatible, WireFormat::OpenAiChat),
    ];
    for (provider, format) in table {
        let upstream = Upstream::stream(vec![Step::Send(stream(format, "plain_text").bytes)]).await;
        let (answer, streamed) = called(provider, &upstream.url).await;
        let answer = answer.unwrap();
        assert!(!answer.text.is_empty() && streamed == answer.text, "{provider:?}");
        assert_eq!(answer.stop, StopReason::End, "{provider:?}");
        let Used::Tokens(used) = answer.used else { panic!("{provider:?} used {:?}", answer.used) };
        assert!(used.input_tokens() > 0 && used.output > 0, "{provider:?}");
    }
}

/// V7 (models): what failed before the provider took it costs nothing; of the rest nobody knows what it cost.
#[tokio::test]
async fn v7_a_failed_attempt_is_settled_by_how_far_it_came() {
    let table = [
        ("429 Too Many Requests", FaultKind::RateLimit, Used::NOTHING),
        ("401 Unauthorized", FaultKind::Auth, Used::NOTHING),
        ("402 Payment Required", FaultKind::OutOfCredit, Used::NOTHING),
        ("400 Bad Request", FaultKind::Invalid, Used::NOTHING),
        ("404 Not Found", FaultKind::Invalid, Used::NOTHING),
        ("413 Payload Too Large", FaultKind::ContextTooLong, Used::NOTHING),
        ("307 Temporary Redirect", FaultKind::Invalid, Used::NOTHING),
        ("503 Service Unavailable", FaultKind::Overloaded, Used::NOTHING),
        ("529 Overloaded", FaultKind::Overloaded, Used::NOTHING),
        ("500 Internal Server Error", FaultKind::Server, Used::Unknown),
        ("502 Bad Gateway", FaultKind::Server, Used::Unknown),
        ("504 Gateway Timeout", FaultKind::Timeout, Used::Unknown),
    ];
    for (status, kind, used) in table {
        let upstream =
            Upstream::respond(status, "retry-after: 7\r\n", vec![Step::Send(b"no".to_vec())]).await;
        let missed = missed(&upstream).await;
        assert_eq!((missed.fault.kind, missed.used), (kind, used), "{status}");
        let is_told = missed.fault.is_retryable();
        assert_eq!(missed.fault.retry_after_ms, is_told.then_some(7_000), "{status}");
    }
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let missed = called(Provider::Ollama, &format!("http://{nobody}")).await.0.unwrap_err();
    assert_eq!((missed.fault.kind, missed.used), (FaultKind::Server, Used::NOTHING));
}

/// V7 (streams): usage that is missing, zero or not final is no usage.
#[tokio::test]
async fn v7_an_answer_without_final_usage_is_unknown() {
    let text = r#"data: {"id":"c","choices":[{"delta":{"content":"hi"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#;
    let end = r#"data: {"id":"c","choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    let zero = r#"data: {"id":"c","choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}"#;
    let usage = r#"data: {"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":2}}}"#;
    let plain = r#"data: {"id":"c","choices":[{"delta":{"content":"hi"}}]}"#;
    let play = |lines: &[&str]| {
        let body: String = lines.iter().map(|line| format!("{line}\n\n")).collect();
        Upstream::stream(vec![Step::Send(body.into_bytes())])
    };
    let broken = missed(&play(&[text]).await).await;
    assert_eq!((broken.fault.kind, broken.used), (FaultKind::Cut, Used::Unknown));
    let malformed = missed(&play(&[plain, "data: {"]).await).await;
    assert_eq!((malformed.fault.kind, malformed.used), (FaultKind::Server, Used::Unknown));
    let exact = Usage { input: 9, output: 3, reasoning: 2, ..Usage::default() };
    let table = [
        (vec![plain, end, "data: [DONE]"], Used::Unknown),
        (vec![plain, end, zero, "data: [DONE]"], Used::Unknown),
        (vec![plain, end, usage, "data: [DONE]"], Used::Tokens(exact)),
    ];
    for (lines, used) in table {
        let upstream = play(&lines).await;
        let answer = called(Provider::OpenAiCompatible, &upstream.url).await.0.unwrap();
        assert_eq!(answer.used, used, "{lines:?}");
    }
    assert_eq!(model(Provider::OpenAi, "http://127.0.0.1:1").lost(), OnLost::Presumed);
}

/// G3 (tool calls): one that was cut at the output cap is dropped; one that the model ended and wrote badly is told to it.
#[tokio::test]
async fn g3_a_tool_call_that_was_cut_is_dropped() {
    let call = |arguments: &str| {
        let function = serde_json::json!({ "name": "now", "arguments": arguments });
        let delta = serde_json::json!({ "tool_calls": [{ "index": 0, "id": "c1", "function": function }] });
        serde_json::json!({ "id": "c", "choices": [{ "delta": delta }] })
    };
    for (arguments, reason, asks, stop) in [
        ("{\"a\":1}", "length", 1, StopReason::OutputCap),
        ("{\"a\":", "length", 0, StopReason::OutputCap),
        ("{\"a\":", "tool_calls", 1, StopReason::ToolCalls),
    ] {
        let end = serde_json::json!({ "id": "c", "choices": [{ "delta": {}, "finish_reason": reason }] });
        let body = format!("data: {}\n\ndata: {end}\n\ndata: [DONE]\n\n", call(arguments));
        let upstream = Upstream::stream(vec![Step::Send(body.into_bytes())]).await;
        let answer = called(Provider::OpenAiCompatible, &upstream.url).await.0.unwrap();
        assert_eq!((answer.asks.len(), answer.stop), (asks, stop), "{arguments} {reason}");
    }
}
