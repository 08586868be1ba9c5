//! Trials of models: one small call, or only a connection.

use std::time::Duration;

use spinney_drivers::http::HttpLimits;
use spinney_drivers::providers::{ProviderClients, ProviderModel, TrialFault};
use spinney_drivers::wire::WireFormat;
use spinney_kernel::budget::Used;
use spinney_kernel::definition::ModelProvider;
use spinney_kernel::primitives::FaultKind;

use super::super::wire::{KEY, stream};
use super::SHORT;
use super::settling::setup;
use super::upstream::{Step, Upstream};

fn model(provider: ModelProvider, url: &str, limits: HttpLimits) -> ProviderModel {
    ProviderModel::new(setup(provider, url), &ProviderClients::new(limits).unwrap()).unwrap()
}

#[tokio::test]
async fn a_trial_asks_for_the_least_output() {
    let table = [
        (ModelProvider::OpenAi, WireFormat::OpenAiResponses, "/max_output_tokens", 16),
        (ModelProvider::OpenAiChat, WireFormat::OpenAiChat, "/max_completion_tokens", 16),
        (ModelProvider::Anthropic, WireFormat::AnthropicMessages, "/max_tokens", 1),
        (ModelProvider::Gemini, WireFormat::Gemini, "/generationConfig/maxOutputTokens", 1),
        (ModelProvider::Ollama, WireFormat::OpenAiChat, "/max_tokens", 1),
    ];
    for (provider, format, place, least) in table {
        let upstream = Upstream::stream(vec![Step::Send(stream(format, "plain_text").bytes)]).await;
        let used = model(provider, &upstream.url, SHORT).try_out().await.unwrap();
        assert!(matches!(used, Used::Tokens(used) if used.input_tokens() > 0), "{provider:?}");
        let request = upstream.requests().remove(0);
        let body: serde_json::Value =
            serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body.pointer(place), Some(&least.into()), "{body}");
        assert!(request.contains(KEY) && request.len() < 1_000, "{request}");
    }
}

async fn failed(status: &str, body: &str) -> TrialFault {
    let upstream = Upstream::respond(status, "", vec![Step::Send(body.as_bytes().to_vec())]).await;
    model(ModelProvider::OpenAiChat, &upstream.url, SHORT).try_out().await.unwrap_err()
}

#[tokio::test]
async fn a_trial_says_what_is_wrong_and_whether_the_server_answered() {
    for (status, kind) in [
        ("401 Unauthorized", FaultKind::Auth),
        ("429 Too Many Requests", FaultKind::RateLimit),
        ("404 Not Found", FaultKind::Invalid),
    ] {
        let failed = failed(status, "no").await;
        assert_eq!(
            (failed.is_answered, failed.fault.kind, failed.used),
            (true, kind, Used::NOTHING),
            "{status}"
        );
    }
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let failed = model(ModelProvider::Ollama, &dead, SHORT).try_out().await.unwrap_err();
    assert_eq!((failed.is_answered, failed.used), (false, Used::NOTHING));
    assert!(!model(ModelProvider::Ollama, &dead, SHORT).reach().await.unwrap_err().is_answered);
}

/// OpenAI's models that reason fail if nothing of the answer fits the cap. The key, the name and the server are fine.
#[tokio::test]
async fn a_cap_that_is_too_small_for_a_reasoning_model_is_no_failure() {
    let message = "Could not finish the message because max_tokens or model output limit was reached.";
    let body = serde_json::json!({ "error": { "type": "invalid_request_error", "message": message } });
    let upstream = Upstream::respond("400 Bad Request", "", vec![Step::Send(body.to_string().into())]).await;
    let used = model(ModelProvider::OpenAiChat, &upstream.url, SHORT).try_out().await;
    assert_eq!(used, Ok(Used::Unknown));
}

#[tokio::test]
async fn a_server_that_never_answers_is_left_after_the_bound() {
    let limits = HttpLimits { total: Duration::from_millis(50), ..SHORT };
    let upstream = Upstream::play(vec![Step::Hold]).await;
    let failed = model(ModelProvider::Ollama, &upstream.url, limits).try_out().await.unwrap_err();
    assert_eq!((failed.is_answered, failed.fault.kind), (false, FaultKind::Timeout));
    let upstream = Upstream::play(vec![Step::Hold]).await;
    let failed = model(ModelProvider::Ollama, &upstream.url, limits).reach().await.unwrap_err();
    assert_eq!(failed.fault.kind, FaultKind::Timeout);
}

#[tokio::test]
async fn a_connection_sends_no_key_and_takes_any_answer() {
    let upstream = Upstream::respond("404 Not Found", "", Vec::new()).await;
    model(ModelProvider::OpenAiChat, &upstream.url, SHORT).reach().await.unwrap();
    let request = upstream.requests().remove(0);
    assert!(request.starts_with("HEAD / HTTP/1.1") && !request.contains(KEY), "{request}");
}
