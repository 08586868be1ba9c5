//! Following a tree by its journal alone, from a process that does not run it.

use std::sync::Arc;

use spinney::bus::{Tail, TracedEvent, Watch};
use spinney::{Shutdown, Tree};
use spinney_testkit::{TestHome, settled};

/// A root that asks a person, so the test decides when the tree ends.
const ASKS: &str = "
rules:
  - { when: { turn: 1 }, call: [ { tool: ask_human, args: { question: Which? } } ] }
  - { say: Thank you. }
";

async fn watched(tree: &Tree) -> Vec<TracedEvent> {
    let mut watcher = tree.watch(Watch::default());
    let mut all = Vec::new();
    while let Some(traced) = watcher.next_event().await {
        all.push(TracedEvent::clone(&traced.unwrap()));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_tail_sees_what_a_watcher_sees_and_waits_until_the_tree_has_ended() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9").await;
    let snapshot = settled(&tree).await;
    let mut tail = Tail::new(stage.journal().as_ref(), tree.id());
    let mut seen = Vec::new();
    while let Some(traced) = tail.next().await.unwrap() {
        seen.push(traced);
    }
    assert_eq!(seen.last().unwrap().recorded.seq, snapshot.seq, "everything that is stored, and no waiting");

    // The process that runs the tree ends and another one resumes it, while the journal is followed.
    home.shutdown(Shutdown::Kill).await;
    let (journal, id) = (Arc::clone(stage.journal()), tree.id());
    let rest = tokio::spawn(async move {
        let mut tail = Tail::new(journal.as_ref(), id);
        let mut all = Vec::new();
        while let Some(traced) = tail.wait_for_next().await.unwrap() {
            all.push(traced);
        }
        all
    });
    let home = stage.home();
    let tree = home.resume(id).await.unwrap();
    tree.answer(snapshot.questions[0].question, "blue").await.unwrap();
    tree.ended().await;
    let all = rest.await.unwrap();
    assert_eq!(all[..seen.len()], seen);
    assert_eq!(all, watched(&tree).await);
}
