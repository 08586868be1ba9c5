//! A usage window of the user's account that is used up: calls wait for it, also in the next process, and nothing is
//! booked for what the provider refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::StatusCode;
use spinney::{Journal, MemoryJournal, Shutdown};
use spinney_kernel::primitives::{ModelName, Time};
use spinney_kernel::record::{Event, WaitReason};
use spinney_server::gateway::{GatewaySettings, Notice, OnLimit, WaitTimes};

use crate::provider::{Format, Provider, answer, respond, script};
use crate::run::{TOKEN, TestRun, budget, settings};

/// A provider that refuses its first calls because a window is used up, and answers then.
async fn used_up(seconds: u64, refusals: usize) -> Provider {
    let count = Arc::new(AtomicUsize::new(0));
    Provider::start(script(move |got, stream| {
        let count = Arc::clone(&count);
        async move {
            if count.fetch_add(1, Ordering::SeqCst) < refusals {
                respond(stream, 429, &refusal(seconds)).await;
            } else {
                answer(&got, stream, None).await;
            }
        }
    }))
    .await
}

fn refusal(seconds: u64) -> String {
    format!(
        "{{\"error\":{{\"type\":\"usage_limit_reached\",\"message\":\"come back later\",\"resets_in_seconds\":{seconds}}}}}"
    )
}

/// Settings in which any window counts.
fn patient(provider: &Provider) -> GatewaySettings {
    let waiting = WaitTimes { window_min: Duration::ZERO, ..WaitTimes::default() };
    GatewaySettings { waiting, ..settings(provider) }
}

/// The model that a window was recorded for, and until when.
async fn window(run: &TestRun) -> Option<(ModelName, Time)> {
    run.events().await.into_iter().rev().find_map(|event| match event {
        Event::RateLimited { model, until } => Some((model, until)),
        _ => None,
    })
}

const fn waits_for_rate(event: &Event) -> bool {
    matches!(event, Event::CallWaiting { why: WaitReason::Rate, .. })
}

/// A window of five hours: all calls of the model wait, nothing is booked, the program hears nothing of it, and the next
/// process waits as well. When the window is over, the call is made.
#[tokio::test(flavor = "multi_thread")]
async fn calls_wait_for_a_usage_window_also_in_the_next_process() {
    let provider = used_up(18_000, 1).await;
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let mut run = TestRun::start_in(Arc::clone(&journal), patient(&provider), &budget(10_000)).await;
    let format = Format::Messages;
    let first = tokio::spawn(run.post(format, &format.request(7, "one", false)).send());
    run.heard(|notice| matches!(notice, Notice::UsageWindow { .. })).await;
    run.saw(waits_for_rate).await;
    let (model, until) = window(&run).await.unwrap();
    let second = tokio::spawn(run.post(format, &format.request(8, "two", false)).send());
    let mut waits = 0;
    run.saw(|event| {
        waits += usize::from(waits_for_rate(event));
        waits == 2
    })
    .await;
    assert_eq!((provider.requests().len(), run.spent().await), (1, 0));
    run.home.shutdown(Shutdown::Kill).await;
    drop(run);
    first.abort();
    second.abort();

    let again = TestRun::resume_in(journal, patient(&provider)).await;
    let seen = again.snapshot().await.seq;
    let third = tokio::spawn(again.post(format, &format.request(9, "three", false)).send());
    again.saw_after(seen, waits_for_rate).await;
    assert_eq!((window(&again).await, provider.requests().len()), (Some((model.clone(), until)), 1));
    again.tree.limit_model(&model, Time(0)).await;
    assert_eq!(third.await.unwrap().unwrap().status(), StatusCode::OK);
    again.saw_after(seen, |event| matches!(event, Event::CallEnded { spent, .. } if !spent.is_zero())).await;
    assert_eq!(again.spent().await, 9 * TOKEN);
}

/// The window ends by itself, and a stream that had to be kept open ends as if the provider had answered at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_continues_by_itself_when_its_window_ends() {
    let provider = used_up(1, 2).await;
    let waiting = WaitTimes {
        window_min: Duration::ZERO,
        withheld: Duration::ZERO,
        ping: Duration::from_millis(100),
        ..WaitTimes::default()
    };
    let run = TestRun::start_with(GatewaySettings { waiting, ..settings(&provider) }, &budget(10_000)).await;
    let format = Format::Messages;
    let response = run.post(format, &format.request(7, "one", true)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let text = response.text().await.unwrap();
    assert!(text.contains("event: ping") && text.contains("message_stop"), "{text}");
    assert_eq!(provider.requests().len(), 3);
    run.saw(|event| matches!(event, Event::CallEnded { spent, .. } if !spent.is_zero())).await;
    assert_eq!(run.spent().await, 7 * TOKEN);
}

/// With `--on-limit stop`, and for a pause that is short, the program gets the provider's own answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_wait_gets_the_refusal_as_it_was_sent() {
    for (seconds, on_limit) in [(18_000, OnLimit::Stop), (5, OnLimit::Wait(Duration::from_secs(600)))] {
        let provider = used_up(seconds, 1).await;
        let run =
            TestRun::start_with(GatewaySettings { on_limit, ..settings(&provider) }, &budget(10_000)).await;
        let format = Format::Messages;
        let response = run.post(format, &format.request(7, "one", false)).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.text().await.unwrap(), refusal(seconds));
        assert_eq!((window(&run).await, run.spent().await), (None, 0));
    }
}
