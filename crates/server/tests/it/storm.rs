//! Many calls at once, each of most of the budget.

use std::time::Duration;

use futures::future::join_all;
use reqwest::StatusCode;
use spinney_server::gateway::OnLimit;
use tokio::time::sleep;

use crate::provider::{Format, Provider};
use crate::run::{TOKEN, TestRun, budget, settings};

/// G9: 32 and 256 parallel calls of 90 % of the ceiling, in each format, streamed and not: one is made, and never more
/// is spent than the ceiling.
async fn storm(format: Format, calls: usize, stream: bool) {
    let provider = Provider::spending_all().await;
    let mut settings = settings(&provider);
    settings.on_limit = OnLimit::Stop;
    let run = TestRun::start_with(settings, &budget(1_000)).await;
    let sends = (0..calls).map(|at| {
        let post = run.post(format, &format.request(900, &format!("call {at}"), stream));
        async move { post.send().await.unwrap().status() }
    });
    let statuses = join_all(sends).await;
    let made = statuses.iter().filter(|status| status.is_success()).count();
    let refused = statuses.iter().filter(|status| **status == StatusCode::PAYMENT_REQUIRED).count();
    assert_eq!((made, refused), (1, calls - 1), "{format:?}: {statuses:?}");
    // Nothing is left behind.
    while run.pending_calls.count() > 0 {
        tokio::task::yield_now().await;
    }
    run.gateway.close(sleep(Duration::from_secs(10))).await;
    let snapshot = run.tree.snapshot().await.unwrap();
    assert_eq!(snapshot.agents[0].spent.get(spinney_kernel::budget::Resource::Cost), 900 * TOKEN);
    assert_eq!(provider.requests().len(), 1, "nothing else left");
}

#[tokio::test(flavor = "multi_thread")]
async fn g9_a_storm_of_32_messages_spends_no_more_than_the_ceiling() {
    storm(Format::Messages, 32, false).await;
    storm(Format::Messages, 32, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g9_a_storm_of_32_chats_spends_no_more_than_the_ceiling() {
    storm(Format::Chat, 32, false).await;
    storm(Format::Chat, 32, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g9_a_storm_of_32_responses_spends_no_more_than_the_ceiling() {
    storm(Format::Responses, 32, false).await;
    storm(Format::Responses, 32, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g9_a_storm_of_32_calls_of_gemini_spends_no_more_than_the_ceiling() {
    storm(Format::Gemini, 32, false).await;
    storm(Format::Gemini, 32, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn g9_a_storm_of_256_calls_spends_no_more_than_the_ceiling_in_each_format() {
    for format in Format::ALL {
        storm(format, 256, false).await;
    }
}
