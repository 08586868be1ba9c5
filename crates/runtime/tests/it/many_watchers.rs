//! Thousands of requests and replies, and publishing beside very many watchers of other topics.

use std::time::Duration;

use spinney::Tree;
use spinney::bus::{Note, Watch, WatchItem, Watcher, reply};
use spinney::clock::{Clock, SystemClock};
use spinney_kernel::primitives::{Actor, Envelope};
use spinney_testkit::{TestHome, settled};

use crate::watching::WAITING;

fn note(topic: &str) -> Note {
    let envelope = Envelope { topic: Some(topic.parse().unwrap()), ..Envelope::default() };
    Note { to: None, envelope, text: "now".to_owned() }
}

/// Answers every request on the topic `right`.
async fn serve(tree: Tree) {
    let watch = Watch { after: tree.status().seq, topic: Some("right".parse().unwrap()), ..Watch::default() };
    let mut watcher = tree.watch(watch);
    while let Some(Ok(WatchItem::Event(request))) = watcher.next().await {
        if let Some(note) = reply(&request, "done") {
            let _ = tree.publish(Actor::PERSON, note).await;
        }
    }
}

/// The shortest time of five hundred publishes.
async fn publishing_ms(tree: &Tree) -> u64 {
    let clock = SystemClock::new();
    let mut shortest = u64::MAX;
    for _ in 0..5 {
        let start = clock.now_ms();
        for _ in 0..500 {
            tree.publish(Actor::PERSON, note("news")).await.unwrap();
        }
        shortest = shortest.min(clock.now_ms() - start);
    }
    shortest
}

/// L37: after 10,000 requests and replies there are as many subscriptions and topics as before. With 50,000
/// subscriptions to other topics publishing takes at most twice as long as with none.
#[tokio::test]
async fn l37_ten_thousand_replies_leave_nothing_and_fifty_thousand_watchers_cost_nothing() {
    let stage = TestHome::new(WAITING);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9").await;
    settled(&tree).await;
    let server = tokio::spawn(serve(tree.clone()));
    // It watches once it has answered.
    while tree.call(Actor::PERSON, note("right"), Duration::from_millis(50)).await.is_err() {}
    let before = tree.watchers();
    for round in 0..500 {
        // Each has its own topic, so its reply also has one.
        let asked = (0..20).map(|number| {
            let topic = format!("right.t{round}-{number}");
            let tree = &tree;
            async move { tree.call(Actor::PERSON, note(&topic), Duration::from_secs(30)).await }
        });
        let replies = futures::future::join_all(asked).await;
        assert!(replies.iter().all(Result::is_ok), "{replies:?}");
    }
    assert_eq!(tree.watchers(), before);

    let alone = publishing_ms(&tree).await;
    let after = tree.status().seq;
    let watch = |number| Watch {
        after,
        topic: Some(format!("other.t{number}").parse().unwrap()),
        ..Watch::default()
    };
    let others: Vec<Watcher> = (0..50_000).map(|number| tree.watch(watch(number))).collect();
    assert_eq!(tree.watchers().0, before.0 + 50_000);
    let among = publishing_ms(&tree).await;
    assert!(among <= 2 * alone.max(1), "{among} ms among 50,000 and {alone} ms alone");
    drop(others);
    assert_eq!(tree.watchers(), before);
    tree.cancel("root".parse().unwrap(), "enough").await.unwrap();
    server.await.unwrap();
    assert_eq!(tree.watchers(), (0, 0));
}
