//! Small budgets: input held at the provider's count, fitted output caps, and names that the user allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use spinney_kernel::budget::{Price, Resource};
use spinney_kernel::definition::OnLow;
use spinney_kernel::record::{Event, Work};
use spinney_server::gateway::wire::{CallUpstream, RefusedName};
use spinney_server::gateway::{ExecBudget, GatewayReport, GatewaySettings, Notice, OnLimit};
use tokio::time::sleep;

use crate::provider::{Format, Got, Provider, answer, respond, script};
use crate::run::{TOKEN, TestRun, budget, settings};

/// A provider at its own address. `count` says what its counter answers: a status and a body.
async fn counting(count: impl Fn(&Got) -> (u16, String) + Send + Sync + 'static) -> Provider {
    let count = Arc::new(count);
    Provider::start(script(move |got, stream| {
        let count = Arc::clone(&count);
        async move {
            if is_count(&got) {
                let (status, body) = count(&got);
                respond(stream, status, &body).await;
            } else {
                answer(&got, stream, Some(10)).await;
            }
        }
    }))
    .await
}

fn is_count(got: &Got) -> bool {
    ["count_tokens", "input_tokens", ":countTokens"].iter().any(|counter| got.path().contains(counter))
}

/// Input costs as much as output, and the test server takes the provider's place.
fn at_the_provider(provider: &Provider) -> GatewaySettings {
    let mut settings = settings(provider);
    let servers = &mut settings.servers;
    for server in [&mut servers.anthropic, &mut servers.open_ai, &mut servers.gemini] {
        server.kind = Some(CallUpstream::Provider);
    }
    settings.models.prices =
        [("m".parse().unwrap(), Price::flat(TOKEN * 1_000_000, TOKEN * 1_000_000))].into();
    settings.on_limit = OnLimit::Stop;
    settings
}

fn shrinking(tokens: u64) -> ExecBudget {
    ExecBudget { on_low: OnLow::Shrink, ..budget(tokens) }
}

/// The input that was held for each call.
async fn held_input(run: &TestRun) -> Vec<u64> {
    let input = |event: &Event| match event {
        Event::CallAsked { work: Work::Model(work), .. } => Some(work.input_tokens),
        _ => None,
    };
    run.events().await.iter().filter_map(input).collect()
}

fn counts(provider: &Provider) -> Vec<Got> {
    provider.requests().into_iter().filter(is_count).collect()
}

fn text(bytes: usize) -> String {
    "word ".repeat(bytes / 5)
}

/// G21 (input): if the bytes do not fit, the provider's count is held, with its margin. The counter gets only the input, in
/// the same bytes, and is not asked twice for the same input.
#[tokio::test(flavor = "multi_thread")]
async fn g21_input_is_held_by_the_providers_own_count_where_its_bytes_do_not_fit() {
    // OpenAI's tokens are counted here as well, so its bound is smaller.
    for (format, margin, ceiling) in [(Format::Messages, 512, 20_000), (Format::Responses, 64, 9_000)] {
        let provider = counting(|_| (200, json!({ "input_tokens": 5_000 }).to_string())).await;
        let run = TestRun::start_with(at_the_provider(&provider), &shrinking(ceiling)).await;
        let mut body = format.request(900, &text(40_000), false);
        body["metadata"] = json!({ "user_id": "somebody" });
        let first = run.post(format, &body).send().await.unwrap();
        assert_eq!(first.status(), StatusCode::OK, "{}", first.text().await.unwrap());
        assert_eq!(held_input(&run).await, [5_000 + margin], "{format:?}");
        let asked = counts(&provider);
        let [asked] = asked.as_slice() else { panic!("{asked:?}") };
        let (asked, sent) = (asked.json(), body.as_object().unwrap());
        let fields: Vec<&String> = asked.as_object().unwrap().keys().collect();
        let expected: &[&str] =
            if format == Format::Messages { &["model", "messages"] } else { &["model", "input"] };
        assert_eq!(fields, expected, "{format:?}");
        assert!(fields.iter().all(|field| asked[field.as_str()] == sent[field.as_str()]));
        // Its bytes are known now, and once its hold is released the same call fits.
        run.saw(|event| matches!(event, Event::CallEnded { .. })).await;
        let again = run.post(format, &body).send().await.unwrap();
        assert_eq!(again.status(), StatusCode::OK);
        assert_eq!(counts(&provider).len(), 1, "{format:?}");
    }
}

/// G21 (input): Gemini's counter gets the model beside the fields of the input, and no word of how the answer is wanted.
#[tokio::test(flavor = "multi_thread")]
async fn g21_an_input_of_gemini_is_held_by_the_providers_own_count() {
    let provider = counting(|_| (200, json!({ "totalTokens": 5_000 }).to_string())).await;
    let run = TestRun::start_with(at_the_provider(&provider), &shrinking(20_000)).await;
    let mut body = Format::Gemini.request(900, &text(40_000), true);
    body["safetySettings"] = json!([{ "category": 7, "threshold": 4 }]);
    let first = run.post(Format::Gemini, &body).send().await.unwrap();
    assert_eq!(first.status(), StatusCode::OK, "{}", first.text().await.unwrap());
    assert_eq!(held_input(&run).await, [5_512]);
    let asked = counts(&provider);
    let [asked] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(asked.path(), "/v1beta/models/m:countTokens");
    let expected = json!({ "generateContentRequest": {
        "model": "models/m", "contents": body["contents"], "generationConfig": body["generationConfig"],
    } });
    assert_eq!(asked.json(), expected);
}

/// A call whose bytes fit makes no counter call.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_bytes_fit_is_not_counted() {
    let provider = counting(|_| (200, json!({ "input_tokens": 5_000 }).to_string())).await;
    let run = TestRun::start_with(at_the_provider(&provider), &shrinking(60_000)).await;
    let body = Format::Messages.request(900, &text(40_000), false);
    assert_eq!(run.post(Format::Messages, &body).send().await.unwrap().status(), StatusCode::OK);
    assert_eq!(counts(&provider).len(), 0);
    assert!(held_input(&run).await[0] > 40_000);
}

/// If the counter is missing, refuses, or answers nonsense, the bytes are held. A missing counter is not used for a while.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_counter_the_bytes_are_held() {
    for (status, body, asked) in [
        (404, "", 1),
        (400, "{}", 2),
        (200, "{}", 1),
        (200, r#"{"input_tokens":"5"}"#, 1),
        (500, "", 1),
        (429, "", 1),
    ] {
        let provider = counting(move |_| (status, body.to_owned())).await;
        let run = TestRun::start_with(at_the_provider(&provider), &shrinking(20_000)).await;
        for _ in 0..2 {
            let large = Format::Messages.request(900, &text(40_000), false);
            let refused = run.post(Format::Messages, &large).send().await.unwrap();
            assert_eq!(refused.status(), StatusCode::PAYMENT_REQUIRED, "{status} {body}");
        }
        assert_eq!(counts(&provider).len(), asked, "{status} {body}");
        assert_eq!(run.spent().await, 0);
    }
}

/// Content that can change before the call is held at its maximum. The counter is not asked.
#[tokio::test(flavor = "multi_thread")]
async fn g22_what_may_change_is_never_bounded_by_a_count() {
    let provider = counting(|_| (200, json!({ "input_tokens": 10 }).to_string())).await;
    let mut settings = at_the_provider(&provider);
    settings.models.prices =
        [("claude-sonnet-4-5".parse().unwrap(), Price::flat(TOKEN * 1_000_000, 0))].into();
    let run = TestRun::start_with(settings, &shrinking(100_000)).await;
    let url = json!({ "type": "document", "source": { "type": "url", "url": "https://example.org/a.pdf" } });
    let body = json!({ "model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{ "role": "user", "content": [url] }] });
    let refused = run.post(Format::Messages, &body).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::PAYMENT_REQUIRED);
    assert!(held_input(&run).await[0] >= 200_000);
    assert_eq!(provider.requests().len(), 0);
}

/// If a count was too low, a notice says so, and the counter is off for that model.
#[tokio::test(flavor = "multi_thread")]
async fn an_overrun_switches_the_counter_off() {
    let provider = Provider::start(script(|got, stream| async move {
        let usage = json!({ "input_tokens": 9_000, "output_tokens": 1 });
        let body = match is_count(&got) {
            true => json!({ "input_tokens": 5_000 }),
            false => json!({ "type": "message", "id": "m", "content": [], "stop_reason": "end_turn", "usage": usage }),
        };
        respond(stream, 200, &body.to_string()).await;
    }))
    .await;
    let mut run = TestRun::start_with(at_the_provider(&provider), &shrinking(30_000)).await;
    let body = |word: &str| Format::Messages.request(900, &format!("{word} {}", text(40_000)), false);
    let first = run.post(Format::Messages, &body("one")).send().await.unwrap();
    assert_eq!(first.status(), StatusCode::OK);
    let too_low = Notice::CountedTooLow { model: "m".to_owned(), counted: 5_512, used: 9_000 };
    run.heard(|notice| *notice == too_low).await;
    run.saw(|event| matches!(event, Event::CallEnded { .. })).await;
    assert_eq!(run.spent().await, 9_001 * TOKEN, "what was used is booked");
    let second = run.post(Format::Messages, &body("two")).send().await.unwrap();
    assert_eq!(second.status(), StatusCode::PAYMENT_REQUIRED);
    assert_eq!(counts(&provider).len(), 1);
}

/// G21 (output): programs ask for far more than they write. Each call gets a share, all of them finish, and no ceiling is
/// passed; the first notice says what was capped.
#[tokio::test(flavor = "multi_thread")]
async fn g21_output_caps_are_fitted_to_what_is_free() {
    for format in Format::ALL {
        let provider =
            Provider::start(script(|got, stream| async move { answer(&got, stream, Some(10)).await })).await;
        let mut run = TestRun::start_with(settings(&provider), &shrinking(40_000)).await;
        let sends = (0..8).map(|at| {
            let post = run.post(format, &format.request(128_000, &format!("call {at}"), at % 2 == 0));
            async move { post.send().await.unwrap().status() }
        });
        let statuses = join_all(sends.collect::<Vec<_>>()).await;
        assert!(statuses.iter().all(StatusCode::is_success), "{format:?} {statuses:?}");
        run.heard(|notice| matches!(notice, Notice::Capped { asked: 128_000, .. })).await;
        let caps: Vec<u64> = provider.requests().iter().map(|got| format.cap(&got.json())).collect();
        assert!(caps.iter().all(|cap| (4_096..=20_000).contains(cap)), "{format:?} {caps:?}");
        let notices = run.notices.borrow().len();
        assert_eq!(notices, 1, "{:?}", run.notices.borrow());
        let GatewayReport { capped, .. } = run.gateway.close(sleep(Duration::from_secs(10))).await;
        assert_eq!(capped, 8);
        assert_eq!(run.tree.snapshot().await.unwrap().agents[0].spent.get(Resource::Cost), 80 * TOKEN);
    }
}

/// G22 (user): a name that is not on the list is refused. The user is asked once and allows it, and the report lists it as
/// outside the bound.
#[tokio::test(flavor = "multi_thread")]
async fn g22_a_person_allows_what_has_no_bound_and_the_report_says_so() {
    let provider =
        Provider::start(script(|got, stream| async move { answer(&got, stream, Some(10)).await })).await;
    let body = |field: &str| {
        let mut body = Format::Responses.request(900, "go", false);
        body[field] = json!({ "enabled": true });
        body
    };
    let refused = TestRun::start_with(at_the_provider(&provider), &budget(40_000)).await;
    let response = refused.post(Format::Responses, &body("multi_agent")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let error: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert!(
        error["error"]["message"].as_str().unwrap().contains("the person who started this run can allow it"),
        "{error}"
    );
    assert_eq!(provider.requests().len(), 0);

    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let mut settings = at_the_provider(&provider);
    settings.ask_person = Some(Arc::new(move |refused: RefusedName| {
        count.fetch_add(1, Ordering::Relaxed);
        let is_allowed = refused.name.to_string() == "multi_agent";
        Box::pin(async move { is_allowed })
    }));
    let mut run = TestRun::start_with(settings, &budget(40_000)).await;
    for (field, status) in [
        ("multi_agent", StatusCode::OK),
        ("multi_agent", StatusCode::OK),
        ("surprise", StatusCode::BAD_REQUEST),
        ("surprise", StatusCode::BAD_REQUEST),
    ] {
        let response = run.post(Format::Responses, &body(field)).send().await.unwrap();
        assert_eq!(response.status(), status, "{field}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2, "each name once");
    run.heard(|notice| matches!(notice, Notice::OutsideBound { .. })).await;
    let report = run.gateway.close(sleep(Duration::from_secs(10))).await;
    let outside: Vec<(String, u64)> =
        report.outside_bound.iter().map(|(name, calls)| (name.to_string(), *calls)).collect();
    assert_eq!(outside, [("multi_agent".to_owned(), 2)]);
    assert_eq!(provider.requests().len(), 2);
}

/// Betas and query parameters are checked as well; at other addresses they pass.
#[tokio::test(flavor = "multi_thread")]
async fn g22_betas_and_queries_are_on_the_list_at_the_providers_own_address() {
    let provider =
        Provider::start(script(|got, stream| async move { answer(&got, stream, Some(10)).await })).await;
    for (beta, query, at_provider) in [
        ("claude-code-20250219,interleaved-thinking-2025-05-14", "?beta=true", StatusCode::OK),
        ("claude-code-20250219, something-new-2027-01-01", "", StatusCode::BAD_REQUEST),
        ("claude-code-20250219", "?flavor=large", StatusCode::BAD_REQUEST),
    ] {
        for (settings, expected) in
            [(at_the_provider(&provider), at_provider), (settings(&provider), StatusCode::OK)]
        {
            let run = TestRun::start_with(settings, &budget(40_000)).await;
            let body = Format::Messages.request(900, "go", false).to_string();
            let post = run.client.post(run.url(&format!("/v1/messages{query}"))).body(body);
            let post = post.header("x-api-key", run.gateway.key().text()).header("anthropic-beta", beta);
            assert_eq!(post.send().await.unwrap().status(), expected, "{beta} {query}");
        }
    }
}

/// The body goes up in the encoding in which it was read.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_up_as_plain_json() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 10_000).await;
    let body = Format::Chat.request(9, "go", false).to_string();
    let post = run.client.post(run.url("/v1/chat/completions")).bearer_auth(run.gateway.key().text());
    let sent = post.header("content-type", "text/plain; charset=UTF-8").body(body).send().await.unwrap();
    assert_eq!(sent.status(), StatusCode::OK);
    assert_eq!(provider.requests()[0].header("content-type"), Some("application/json"));
}
