//! The gateway dies: the ledger continues from where it stopped.

use std::sync::Arc;
use std::time::Duration;

use reqwest::StatusCode;
use spinney::tree::verify;
use spinney::{Journal, MemoryJournal, Shutdown};
use spinney_kernel::budget::{Price, Resource};
use spinney_kernel::primitives::Seq;
use spinney_kernel::record::{Event, Outcome};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::provider::{Format, Provider};
use crate::run::{TOKEN, TestRun, budget, settings};

/// G11: after a kill, settled calls stay settled, a call without a recorded end is presumed spent, a call that waited is
/// dropped, agents keep their accounts, and the journal verifies.
#[tokio::test(flavor = "multi_thread")]
async fn g11_killing_the_gateway_loses_no_booking() {
    let go = Arc::new(Semaphore::new(0));
    let provider = Provider::waiting(Arc::clone(&go)).await;
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let run = TestRun::start_in(Arc::clone(&journal), settings(&provider), &budget(1_000)).await;
    let format = Format::Messages;
    let call = |tokens: u64| {
        let post = run.post(format, &format.request(tokens, "work", false));
        tokio::spawn(
            post.header("x-claude-code-session-id", "s").header("x-claude-code-agent-id", "a").send(),
        )
    };
    go.add_permits(1);
    assert_eq!(call(100).await.unwrap().unwrap().status(), StatusCode::OK);
    run.saw(|event| matches!(event, Event::CallEnded { .. })).await;
    let (running, waiting) = (call(300), call(800));
    run.saw(|event| matches!(event, Event::CallWaiting { .. })).await;
    while provider.requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    let tree = run.tree.id();
    run.home.shutdown(Shutdown::Kill).await;
    drop(run.gateway);
    running.abort();
    waiting.abort();

    let provider = Provider::spending_all().await;
    let again = TestRun::resume_in(Arc::clone(&journal), settings(&provider)).await;
    assert_eq!(again.tree.id(), tree);
    let snapshot = again.snapshot().await;
    let counts: Vec<u64> =
        snapshot.agents.iter().map(|agent| agent.spent.get(Resource::Cost) / TOKEN).collect();
    let ends: Vec<Outcome> = again
        .events()
        .await
        .into_iter()
        .filter_map(|event| if let Event::CallEnded { outcome, .. } = event { Some(outcome) } else { None })
        .collect();
    let lost = ends.iter().filter(|outcome| **outcome == Outcome::Lost).count();
    let dropped = ends.iter().filter(|outcome| **outcome == Outcome::Cancelled).count();
    assert_eq!((ends.len(), lost, dropped), (3, 1, 1), "{ends:?}");
    // 100 were used; of 300 and 800 one ran, and is presumed spent.
    assert!([vec![400, 400], vec![900, 900]].contains(&counts), "{counts:?}");
    let before = counts[0];
    let post = again.post(format, &format.request(50, "more", false));
    let post = post.header("x-claude-code-session-id", "s").header("x-claude-code-agent-id", "a");
    assert_eq!(post.send().await.unwrap().status(), StatusCode::OK);
    again.gateway.close(sleep(Duration::from_secs(10))).await;
    let snapshot = again.tree.snapshot().await.unwrap();
    assert_eq!(snapshot.agents.len(), 2, "the agent was found again");
    assert_eq!(snapshot.agents[1].spent.get(Resource::Cost) / TOKEN, before + 50);
    again.home.shutdown(Shutdown::Stop).await;
    let verified = verify(journal.as_ref(), tree, None).await.unwrap();
    assert!(verified.decided);
    assert!(journal.head(tree).await.unwrap().unwrap().seq > Seq(0));
}

/// A tree books at the price that it recorded: a resumed run whose price is another one says so and makes no call.
#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_run_does_not_book_at_an_old_price() {
    let provider = Provider::spending_all().await;
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let format = Format::Chat;
    let run = TestRun::start_in(Arc::clone(&journal), settings(&provider), &budget(1_000)).await;
    let first = run.post(format, &format.request(10, "x", false)).send().await.unwrap();
    assert_eq!(first.status(), StatusCode::OK);
    run.gateway.close(sleep(Duration::from_secs(10))).await;
    run.home.shutdown(Shutdown::Stop).await;

    let mut dearer = settings(&provider);
    dearer.models.prices = [("m".parse().unwrap(), Price::flat(500_000_000, 2_000_000_000_000))].into();
    let run = TestRun::resume_in(Arc::clone(&journal), dearer).await;
    for _ in 0..2 {
        let other = run.post(format, &format.request(10, "x", false)).send().await.unwrap();
        assert_eq!(other.status(), StatusCode::BAD_REQUEST);
        let text = other.text().await.unwrap();
        assert!(
            text.contains(
                "$0.00,$1000.00,$0.00,$0.00,$0.00,$1000.00 in this run and $0.50,$2000.00,$0.50,$0.50,$0.50,$2000.00 now"
            ),
            "{text}"
        );
        assert!(text.contains("the price that it started with"), "{text}");
    }
    run.home.shutdown(Shutdown::Stop).await;
    drop(run.gateway);

    // A rate that is named and is the default is the same.
    let mut same = settings(&provider);
    let price = Price { cached_input_per_mtok: Some(0), ..Price::flat(0, 1_000_000_000_000) };
    same.models.prices = [("m".parse().unwrap(), price)].into();
    let run = TestRun::resume_in(journal, same).await;
    let same = run.post(format, &format.request(10, "x", false)).send().await.unwrap();
    assert_eq!(same.status(), StatusCode::OK);
    assert_eq!(provider.requests().len(), 2);
}
