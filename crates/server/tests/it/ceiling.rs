//! At a ceiling: calls wait, continue after a raise, or their programs read why not.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use spinney::clock::{Clock as _, SystemClock};
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::definition::OnLow;
use spinney_kernel::record::{Event, Outcome, WaitReason};
use spinney_kernel::rules::request::Raise;
use spinney_kernel::world::{Halt, TreeState};
use spinney_server::gateway::{ExecBudget, Notice, OnLimit, WaitTimes};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::provider::{Format, Provider};
use crate::run::{TOKEN, TestRun, budget, settings};

/// G11: at its ceiling a program waits; one raise lets every call of it finish.
#[tokio::test(flavor = "multi_thread")]
async fn g11_calls_at_the_ceiling_wait_for_a_raise_and_finish() {
    for format in Format::ALL {
        let provider = Provider::spending_all().await;
        let mut run = TestRun::start(&provider, 1_000).await;
        let first = run.post(format, &format.request(900, "one", false)).send().await.unwrap();
        assert_eq!(first.status(), StatusCode::OK);
        let later = (0..3).map(|at| {
            let body = format.request(900, &format!("later {at}"), at == 1);
            run.post(format, &body).send()
        });
        let later = tokio::spawn(join_all(later.collect::<Vec<_>>()));
        run.heard(|notice| matches!(notice, Notice::Halted { account, .. } if account.as_str() == "main"))
            .await;
        assert_eq!(run.snapshot().await.state, TreeState::Halted);
        assert_eq!(run.spent().await, 900 * TOKEN);
        run.raise("main", 5_000).await;
        for response in later.await.unwrap() {
            let response = response.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert!(response.text().await.unwrap().contains("hello"));
        }
        run.heard(|notice| *notice == Notice::Continued).await;
        run.saw(|event| matches!(event, Event::TreeUnhalted)).await;
        run.gateway.close(sleep(Duration::from_secs(10))).await;
        let snapshot = run.tree.snapshot().await.unwrap();
        assert_eq!(snapshot.agents[0].spent.get(Resource::Cost), 4 * 900 * TOKEN);
    }
}

/// G11: with `--on-limit stop` the program reads our text at the status that it shows. G23: the text names no command.
#[tokio::test(flavor = "multi_thread")]
async fn g11_a_run_that_stops_at_its_limit_tells_the_program_why_and_a_person_what_is_missing() {
    let provider = Provider::spending_all().await;
    let mut settings = settings(&provider);
    settings.on_limit = OnLimit::Stop;
    let mut run = TestRun::start_with(settings, &budget(100)).await;
    for (format, agent, status) in [
        (Format::Messages, "claude-cli/2.1", StatusCode::PAYMENT_REQUIRED),
        (Format::Responses, "codex_cli_rs/0.166", StatusCode::BAD_REQUEST),
        (Format::Chat, "something", StatusCode::PAYMENT_REQUIRED),
    ] {
        let post = run.post(format, &format.request(900, "too much", true)).header("user-agent", agent);
        let response = post.send().await.unwrap();
        assert_eq!(response.status(), status, "{agent}");
        let text = response.text().await.unwrap();
        // Codex shows the body as it is, so it gets the text alone.
        let body =
            serde_json::from_str::<Value>(&text).unwrap_or_else(|_| json!({ "error": { "message": text } }));
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains("limit $0.10"), "{message}");
        assert!(message.contains("a person can raise the budget"), "{message}");
        assert!(
            !message.contains("spinney budget") && !message.contains("--"),
            "a model may read it: {message}"
        );
    }
    // What is needed for the command that raises.
    let is_short = |halt: &Halt| halt.account.as_str() == "main" && halt.short.limit == 100 * TOKEN;
    run.heard(|notice| matches!(notice, Notice::GivenUp { halt: Some(halt), .. } if is_short(halt))).await;
    assert_eq!(provider.requests().len(), 0);
    assert_eq!(run.spent().await, 0);
}

/// G11: a call is given up after the halt wait, and others that fit continue.
#[tokio::test(flavor = "multi_thread")]
async fn g11_after_the_halt_wait_the_program_reads_our_text() {
    let provider = Provider::spending_all().await;
    let mut settings = settings(&provider);
    settings.on_limit = OnLimit::Wait(Duration::from_millis(50));
    let mut run = TestRun::start_with(settings, &budget(100)).await;
    let format = Format::Messages;
    let large = run.post(format, &format.request(900, "large", false)).send().await.unwrap();
    assert_eq!(large.status(), StatusCode::PAYMENT_REQUIRED);
    run.heard(|notice| matches!(notice, Notice::GivenUp { .. })).await;
    let small = run.post(format, &format.request(50, "small", false)).send().await.unwrap();
    assert_eq!(small.status(), StatusCode::OK);
    run.saw(|event| matches!(event, Event::CallEnded { outcome: Outcome::Done { .. }, .. })).await;
    assert_eq!(run.spent().await, 50 * TOKEN);
}

/// Claude Code sends a stream that ended with an error once more, without streaming. It must not wait as long again.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_call_was_given_up_the_next_one_is_refused_at_once_until_a_raise() {
    const HALT_WAIT: Duration = Duration::from_secs(3);
    let provider = Provider::spending_all().await;
    let mut settings = settings(&provider);
    settings.on_limit = OnLimit::Wait(HALT_WAIT);
    let run = TestRun::start_with(settings, &budget(100)).await;
    let format = Format::Messages;
    let waited = run.post(format, &format.request(900, "large", true)).send().await.unwrap();
    assert_eq!(waited.status(), StatusCode::PAYMENT_REQUIRED);
    let since = SystemClock::new().now_ms();
    let again = run.post(format, &format.request(900, "large", false)).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::PAYMENT_REQUIRED);
    let waited = Duration::from_millis(SystemClock::new().now_ms() - since);
    assert!(waited < HALT_WAIT, "{waited:?}");
    assert!(again.text().await.unwrap().contains("limit $0.10"));
    let halts = |notice: &&Notice| matches!(notice, Notice::Halted { .. } | Notice::Continued);
    assert_eq!(run.notices.borrow().iter().filter(halts).count(), 1, "{:?}", run.notices.borrow());
    run.raise("main", 1_000).await;
    let raised = run.post(format, &format.request(900, "large", false)).send().await.unwrap();
    assert_eq!(raised.status(), StatusCode::OK);
}

/// A streamed call gets the head of its response and pings while it waits; what is refused then is an event.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_stream_gets_its_head_and_pings_and_then_its_answer_or_an_error_event() {
    for format in Format::ALL {
        let provider = Provider::spending_all().await;
        let mut settings = settings(&provider);
        let ping = Duration::from_millis(20);
        settings.waiting = WaitTimes { withheld: Duration::from_millis(20), ping, ..WaitTimes::default() };
        let run = TestRun::start_with(settings.clone(), &budget(100)).await;
        let body = format.request(900, "late", true);
        let mut response = run.post(format, &body).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
        let first = response.chunk().await.unwrap().unwrap();
        assert!(
            std::str::from_utf8(&first).unwrap().contains("ping")
                || format == Format::Responses
                || (format == Format::Gemini && &first[..] == b"\n\n"),
            "{first:?}"
        );
        run.raise("main", 1_000).await;
        let rest = response.text().await.unwrap();
        assert!(rest.contains("hello"), "{rest}");
        // The same at a limit that is not raised.
        settings.on_limit = OnLimit::Wait(Duration::from_millis(200));
        let run = TestRun::start_with(settings, &budget(100)).await;
        let response = run.post(format, &body).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let text = response.text().await.unwrap();
        assert!(text.contains("does not allow this call"), "{text}");
        assert_eq!(provider.requests().len(), 1);
    }
}

/// A client's retry takes the place of the call that it left, if the bytes and the agent are the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_a_waiting_call_takes_its_place_in_line() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 100).await;
    let format = Format::Messages;
    let body = format.request(900, "patience", false);
    let first = tokio::spawn(run.post(format, &body).send());
    run.saw(|event| matches!(event, Event::CallWaiting { why: WaitReason::Halted, .. })).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    // The server sees the closed connection on its own time: the retry is merged from then on.
    let merged = async {
        loop {
            if run.gateway.abandoned_calls() == 1 {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    merged.await;
    let second = tokio::spawn(run.post(format, &body).send());
    while run.gateway.abandoned_calls() > 0 {
        tokio::task::yield_now().await;
    }
    run.raise("main", 2_000).await;
    assert_eq!(second.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(provider.requests().len(), 1);
    let asked = run.events().await.iter().filter(|event| matches!(event, Event::CallAsked { .. })).count();
    assert_eq!(asked, 1, "the retry asked for nothing new");
}

/// A call whose program is gone is taken out of the line after a while, and nothing is sent for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_call_without_a_program_is_withdrawn() {
    let provider = Provider::spending_all().await;
    let mut settings = settings(&provider);
    settings.waiting.retry = Duration::from_millis(20);
    let run = TestRun::start_with(settings, &budget(100)).await;
    let format = Format::Chat;
    let call = tokio::spawn(run.post(format, &format.request(900, "gone", false)).send());
    run.saw(|event| matches!(event, Event::CallWaiting { why: WaitReason::Halted, .. })).await;
    call.abort();
    run.saw(|event| matches!(event, Event::CallEnded { outcome: Outcome::Cancelled, .. })).await;
    run.saw(|event| matches!(event, Event::TreeUnhalted)).await;
    assert_eq!((provider.requests().len(), run.spent().await), (0, 0));
}

/// `--on-low shrink` lowers the output cap, and Anthropic's thinking budget with it.
#[tokio::test(flavor = "multi_thread")]
async fn shrink_lowers_the_cap_and_the_thinking_budget() {
    let provider = Provider::spending_all().await;
    let low = ExecBudget { on_low: OnLow::Shrink, ..budget(4_000) };
    let run = TestRun::start_with(settings(&provider), &low).await;
    let body = json!({
        "model": "m", "max_tokens": 32_000, "thinking": { "type": "enabled", "budget_tokens": 31_999 },
        "messages": [{ "role": "user", "content": "think" }],
    });
    let response = run.post(Format::Messages, &body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let sent = provider.requests()[0].json();
    assert_eq!(sent["max_tokens"], 4_000);
    assert!(sent["thinking"]["budget_tokens"].as_u64().unwrap() < 4_000);
    run.gateway.close(sleep(Duration::from_secs(10))).await;
    let snapshot = run.tree.snapshot().await.unwrap();
    assert_eq!(snapshot.agents[0].spent.get(Resource::Cost), 4_000 * TOKEN);
}

/// A call that only its output cap makes too large: program and person read what would lower it.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_too_large_an_output_cap_is_told_about_shrink() {
    let provider = Provider::spending_all().await;
    let mut settings = settings(&provider);
    settings.on_limit = OnLimit::Stop;
    let ceilings = |on_low, tokens, cost| ExecBudget { on_low, tokens, ..budget(cost) };
    for (caps, is_told) in [
        (ceilings(OnLow::Halt, None, 4_000), true),
        (ceilings(OnLow::Halt, Some(8_000), 100_000), true),
        // What is left is not enough for an answer.
        (ceilings(OnLow::Halt, None, 1_000), false),
        (ceilings(OnLow::Shrink, None, 1_000), false),
    ] {
        let mut run = TestRun::start_with(settings.clone(), &caps).await;
        let post = run.post(Format::Messages, &Format::Messages.request(32_000, "x", true));
        let text = post.send().await.unwrap().text().await.unwrap();
        let words = "its output cap of 32000 tokens is too large, and a smaller one would fit";
        assert_eq!(text.contains(words), is_told, "{caps:?} {text}");
        let cap = is_told.then_some(32_000);
        run.heard(|notice| matches!(notice, Notice::Halted { large_cap, .. } if *large_cap == cap)).await;
    }
    assert_eq!(provider.requests().len(), 0);
}

/// Each ceiling freezes the run, and raising that one lets it continue.
#[tokio::test(flavor = "multi_thread")]
async fn g11_ceilings_of_tokens_and_calls_freeze_until_they_are_raised() {
    for (caps, resource, add) in [
        (ExecBudget { tokens: Some(2_500), ..ExecBudget::default() }, Resource::Tokens, 2_000),
        (ExecBudget { steps: Some(1), ..ExecBudget::default() }, Resource::Steps, 1),
    ] {
        let provider = Provider::spending_all().await;
        let mut run = TestRun::start_with(settings(&provider), &caps).await;
        let format = Format::Messages;
        let call = |text| run.post(format, &format.request(900, text, false)).send();
        assert_eq!(call("one").await.unwrap().status(), StatusCode::OK);
        let second = tokio::spawn(call("two"));
        run.heard(|notice| matches!(notice, Notice::Halted { short, .. } if short.resource == resource))
            .await;
        assert_eq!((run.snapshot().await.state, provider.requests().len()), (TreeState::Halted, 1));
        let add = Amounts::ZERO.with(resource, add);
        run.tree.raise(Raise { agent: "main".parse().unwrap(), add, add_ms: 0 }).await.unwrap();
        assert_eq!(second.await.unwrap().unwrap().status(), StatusCode::OK);
        assert_eq!(provider.requests().len(), 2);
    }
}

/// Steps, tokens and parallel calls are also caps.
#[tokio::test(flavor = "multi_thread")]
async fn steps_and_parallel_calls_are_limited() {
    let go = Arc::new(Semaphore::new(0));
    let provider = Provider::waiting(Arc::clone(&go)).await;
    let mut settings = settings(&provider);
    settings.on_limit = OnLimit::Stop;
    let caps = ExecBudget { steps: Some(2), parallel: Some(1), ..budget(10_000) };
    let run = TestRun::start_with(settings, &caps).await;
    let format = Format::Responses;
    let call = |at: u64| tokio::spawn(run.post(format, &format.request(100 + at, "x", false)).send());
    let (one, two) = (call(1), call(2));
    run.saw(|event| matches!(event, Event::CallWaiting { why: WaitReason::Slot, .. })).await;
    assert_eq!(provider.requests().len().max(1), 1, "one at a time");
    go.add_permits(2);
    for made in [one, two] {
        assert_eq!(made.await.unwrap().unwrap().status(), StatusCode::OK);
    }
    let third = call(3).await.unwrap().unwrap();
    assert_eq!(third.status(), StatusCode::PAYMENT_REQUIRED);
    assert!(third.text().await.unwrap().contains("steps ceiling"));
}

/// A model outside the list, or without a price, is refused with the remedy, and nothing is sent.
#[tokio::test(flavor = "multi_thread")]
async fn models_that_may_not_be_called_are_refused_with_the_remedy() {
    let provider = Provider::spending_all().await;
    let mut settings = settings(&provider);
    settings.models.allowed = vec!["m".to_owned(), "claude-*".to_owned()];
    let run = TestRun::start_with(settings, &budget(1_000)).await;
    for (model, words) in [
        ("gpt-5", "is not allowed in this run: use one of m, claude-*"),
        ("claude-x", "the person who started this run can say what it costs"),
        ("claude x\u{7f}", "not printable"),
    ] {
        let body =
            json!({ "model": model, "max_tokens": 10, "messages": [{ "role": "user", "content": "x" }] });
        let response = run.post(Format::Messages, &body).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        let text = response.text().await.unwrap();
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(provider.requests().len(), 0);
}
