//! Who is served, what is passed, and where keys may appear.

use reqwest::StatusCode;
use serde_json::json;
use spinney_journal::blobs_of;
use spinney_kernel::record::{Event, Outcome, Work};
use spinney_server::gateway::Bodies;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::provider::{Format, Provider, respond, script};
use crate::run::{TOKEN, TestRun, USER_KEY, budget, settings};

/// G12: a request without the run's key is not served, whatever it asks for, and nothing is held or sent.
#[tokio::test(flavor = "multi_thread")]
async fn g12_nobody_without_the_runs_key_is_served() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 1_000).await;
    assert!(run.gateway.address().ip().is_loopback());
    for format in Format::ALL {
        let (path, body) = format.sent(&format.request(10, "x", false));
        let url = run.url(&path);
        for key in [None, Some("wrong"), Some(USER_KEY)] {
            let mut post = run.client.post(&url).body(body.clone());
            if let Some(key) = key {
                post = post.header("x-api-key", key).header("x-goog-api-key", key).bearer_auth(key);
            }
            let response = post.send().await.unwrap();
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
            assert!(!response.text().await.unwrap().contains(run.gateway.key().text()));
        }
    }
    assert_eq!(run.client.get(run.url("/")).send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    assert_eq!(provider.requests().len(), 0);
    assert!(!run.events().await.iter().any(|event| matches!(event, Event::CallAsked { .. })));
}

/// Other paths are not passed on, and a WebSocket is sent to HTTP.
#[tokio::test(flavor = "multi_thread")]
async fn other_paths_and_websockets_are_refused() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 1_000).await;
    let key = run.gateway.key().text().to_owned();
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/v1/messages"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/files"),
        ("DELETE", "/v1/models/m"),
        ("GET", "/v1/models/../files"),
        ("POST", "/v1/images/generations"),
    ] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let response = run.client.request(method, run.url(path)).bearer_auth(&key).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let compact = run.client.post(run.url("/v1/responses/compact")).bearer_auth(&key).body("{}");
    let response = compact.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert!(
        response.text().await.unwrap().contains("no budget bounds it; compact with a call of /responses")
    );
    let socket = run.client.get(run.url("/v1/responses")).bearer_auth(&key).header("connection", "upgrade");
    let response = socket.header("upgrade", "websocket").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UPGRADE_REQUIRED);
    assert_eq!(provider.requests().len(), 0);
}

/// Codex compacts its context with a call that ends in its own item: it is held and settled like any other, with an
/// output cap that it does not send itself.
#[tokio::test(flavor = "multi_thread")]
async fn the_compaction_of_codex_is_a_call_like_any_other() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 100_000).await;
    let body = json!({
        "model": "m", "stream": true, "store": false, "include": [], "reasoning": { "effort": "medium" },
        "input": [
            { "type": "additional_tools", "role": "developer", "tools": [] },
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "work" }] },
            { "type": "configuration_update" },
            { "type": "compaction_trigger" },
        ],
    });
    let response = run.post(Format::Responses, &body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.text().await.unwrap().contains("response.completed"));
    let mut sent = provider.requests()[0].json();
    let cap = sent.as_object_mut().unwrap().remove("max_output_tokens").unwrap().as_u64().unwrap();
    assert_eq!(sent, body);
    run.saw(|event| matches!(event, Event::CallEnded { outcome: Outcome::Done { .. }, .. })).await;
    assert_eq!(run.spent().await, cap * TOKEN);
}

/// G12: the provider gets the user's key and not the run's; journal and response have neither.
#[tokio::test(flavor = "multi_thread")]
async fn g12_the_users_key_goes_up_and_nowhere_else() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 10_000).await;
    for format in Format::ALL {
        let post = run.post(format, &format.request(10, "x", false)).header("x-other", "stays");
        let response = post.send().await.unwrap();
        let headers = format!("{:?}", response.headers());
        let down = format!("{headers} {}", response.text().await.unwrap());
        assert!(!down.contains(USER_KEY), "{down}");
    }
    let run_key = run.gateway.key().text().to_owned();
    for got in provider.requests() {
        assert!(got.head.contains(USER_KEY) && !got.head.contains(&run_key), "{}", got.head);
        assert_eq!(got.header("x-other"), Some("stays"));
        assert_eq!(got.header("accept-encoding"), Some("identity"));
    }
    for event in run.events().await {
        let text = serde_json::to_string(&event).unwrap();
        assert!(!text.contains(USER_KEY) && !text.contains(&run_key), "{text}");
        for blob in blobs_of(&event) {
            let bytes = run.home.journal().blob(blob).await.unwrap().unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(USER_KEY) && !text.contains(&run_key));
        }
    }
}

/// G12 (Gemini): the key of the run may be in the query. It goes no further, and the user's own is in a header.
#[tokio::test(flavor = "multi_thread")]
async fn g12_a_key_in_a_query_is_replaced_and_kept_nowhere() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 10_000).await;
    let run_key = run.gateway.key().text().to_owned();
    let (path, body) = Format::Gemini.sent(&Format::Gemini.request(10, "x", true));
    let url = |key: &str| run.url(&format!("{path}&key={key}"));
    let response = run.client.post(url(&run_key)).body(body.clone()).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.text().await.unwrap().contains("hello"));
    let [got] = provider.requests().try_into().unwrap();
    assert_eq!(got.path(), "/v1beta/models/m:streamGenerateContent?alt=sse");
    assert_eq!(got.header("x-goog-api-key"), Some(USER_KEY));
    run.saw(|event| matches!(event, Event::CallEnded { .. })).await;
    for event in run.events().await {
        let text = serde_json::to_string(&event).unwrap();
        assert!(!text.contains(USER_KEY) && !text.contains(&run_key), "{text}");
    }
    let refused = run.client.post(url("AIza-of-somebody")).body(body).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let text = refused.text().await.unwrap();
    assert!(text.contains(r#""status":"UNAUTHENTICATED""#), "{text}");
}

/// The journal keeps what was asked and answered; with `--no-bodies` only counts.
#[tokio::test(flavor = "multi_thread")]
async fn requests_and_responses_are_kept_unless_a_person_says_no() {
    let provider = Provider::spending_all().await;
    for bodies in [Bodies::Kept, Bodies::Dropped] {
        let mut settings = settings(&provider);
        settings.bodies = bodies;
        let run = TestRun::start_with(settings, &budget(1_000)).await;
        let body = Format::Messages.request(10, "remember this", true);
        let response = run.post(Format::Messages, &body).send().await.unwrap().text().await.unwrap();
        run.saw(|event| matches!(event, Event::CallEnded { .. })).await;
        let events = run.events().await;
        let asked = events.iter().find(|event| matches!(event, Event::CallAsked { .. })).unwrap();
        let Event::CallAsked { work: Work::Model(work), .. } = asked else { panic!("{asked:?}") };
        assert_eq!((work.model.as_str(), work.output_cap), ("anthropic/m", 10));
        let blobs = blobs_of(asked);
        let ended = events.iter().find(|event| matches!(event, Event::CallEnded { .. })).unwrap();
        let Event::CallEnded { outcome: Outcome::Done { body: said, .. }, .. } = ended else {
            panic!("{ended:?}")
        };
        match bodies {
            Bodies::Kept => {
                let kept = run.home.journal().blob(blobs[0]).await.unwrap().unwrap();
                assert_eq!(kept, body.to_string().into_bytes());
                assert_eq!(said.text, response);
            }
            Bodies::Dropped => {
                assert!(blobs.is_empty());
                assert!(said.text.is_empty());
                assert!(!serde_json::to_string(&events).unwrap().contains("remember this"));
            }
        }
    }
}

/// Token counts and lists of models pass without a hold.
#[tokio::test(flavor = "multi_thread")]
async fn token_counts_and_model_lists_pass_without_a_hold() {
    let provider = Provider::start(script(|got, stream| async move {
        let body = json!({ "path": got.path(), "has_key": got.head.contains(USER_KEY) });
        respond(stream, 200, &body.to_string()).await;
    }))
    .await;
    let run = TestRun::start(&provider, 1_000).await;
    let key = run.gateway.key().text();
    let count = run.client.post(run.url("/v1/messages/count_tokens?beta=true")).header("x-api-key", key);
    let count = count.body("{\"model\":\"m\",\"messages\":[]}").send().await.unwrap();
    assert_eq!(count.status(), StatusCode::OK);
    let text = count.text().await.unwrap();
    assert_eq!(text, r#"{"path":"/v1/messages/count_tokens?beta=true","has_key":true}"#);
    let models = run.client.get(run.url("/v1/models")).bearer_auth(key).send().await.unwrap();
    assert_eq!(models.text().await.unwrap(), r#"{"path":"/v1/models","has_key":true}"#);
    let count = run.client.post(run.url(&format!("/v1beta/models/m:countTokens?key={key}"))).body("{}");
    let text = count.send().await.unwrap().text().await.unwrap();
    assert_eq!(text, r#"{"path":"/v1beta/models/m:countTokens","has_key":true}"#);
    let models = run.client.get(run.url("/v1beta/models?pageSize=9")).header("x-goog-api-key", key);
    let text = models.send().await.unwrap().text().await.unwrap();
    assert_eq!(text, r#"{"path":"/v1beta/models?pageSize=9","has_key":true}"#);
    assert_eq!(run.spent().await, 0);
}

/// 1,000 open connections that say nothing do not keep a program from its calls.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_idle_connections_keep_nobody_out() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 1_000).await;
    let (soft, _) = (rustix::process::getrlimit(rustix::process::Resource::Nofile), ());
    let most = soft.current.map_or(1_000, |current| usize::try_from(current / 3).unwrap()).min(1_000);
    let mut idle = Vec::new();
    for _ in 0..most {
        idle.push(TcpStream::connect(run.gateway.address()).await.unwrap());
    }
    let response = run.post(Format::Chat, &Format::Chat.request(10, "x", false)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

/// Anything that is not HTTP gets a short answer and a closed connection.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_http_is_closed() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 1_000).await;
    let mut stream = TcpStream::connect(run.gateway.address()).await.unwrap();
    stream.write_all(b"\x16\x03\x01\x02\x00 this is not HTTP\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.len() < 1_000, "{answer:?}");
}
