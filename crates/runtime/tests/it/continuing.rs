//! A tree that has ended stays as it is; a new tree continues it.

use spinney::request::Send;
use spinney::tree::{BranchError, verify};
use spinney::{Home, Shutdown, Tree};
use spinney_journal::{Blocking, JournalFault, rebuild};
use spinney_kernel::budget::Resource;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, Body, TreeId};
use spinney_kernel::record::{ContinuedAs, Exit};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, settled};

const TALKS: &str = "
rules:
- { when: { last_contains: colour }, say: 'you said {{ last }}, and before that I had said blue' }
- { when: { last_contains: anything else }, say: green too }
- { say: blue }
";

async fn says(tree: &Tree, text: &str) {
    let send = Send::plain("root".parse().unwrap(), Body::text(text.to_owned()));
    tree.request(Actor::PERSON, send).await.unwrap();
}

async fn answer(tree: &Tree) -> String {
    tree.ended().await;
    let end = tree.snapshot().await.unwrap().end.unwrap();
    assert_eq!(end.exit, Exit::Completed);
    end.shown.text
}

async fn continued(home: &Home, from: TreeId) -> TreeId {
    let tree = home.draw_id();
    home.continue_ended(tree, from, ContinuedAs::Before).await.unwrap();
    tree
}

/// A follow-up to a tree that has ended starts one that goes on with its context and with what is left of its budget, and
/// both replay.
#[tokio::test(start_paused = true)]
async fn an_ended_tree_is_continued_with_its_context_and_the_rest_of_its_budget() {
    let stage = TestHome::new(TALKS);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=1").await;
    assert_eq!(answer(&tree).await, "blue");
    let first = tree.snapshot().await.unwrap();
    let spent = first.agents[0].spent.get(Resource::Cost);
    let journal = stage.journal().as_ref();
    let before = journal.head(tree.id()).wait().unwrap().unwrap();
    let id = continued(&home, tree.id()).await;
    assert_eq!(home.continuation(tree.id()).await, Ok(Some(id)));
    let other = home.resume(id).await.unwrap();
    let snapshot = settled(&other).await;
    assert_eq!((snapshot.state, snapshot.questions.len()), (TreeState::Waiting, 1));
    let limit = snapshot.agents[0].limit.unwrap().get(Resource::Cost);
    assert_eq!((limit, spent > 0), (Some(9_000_000_000 - spent), true));
    says(&other, "which colour").await;
    assert_eq!(answer(&other).await, "you said which colour, and before that I had said blue");
    // Its model read the whole conversation, and its one turn is a new one.
    let packet = &stage.model().attempts().pop().unwrap().packet;
    let texts: Vec<String> = packet.messages.iter().map(|message| format!("{message:?}")).collect();
    assert!(texts.iter().any(|text| text.contains("blue")), "{texts:?}");
    assert_eq!(journal.head(tree.id()).wait().unwrap().unwrap(), before);
    for id in [tree.id(), id] {
        assert!(verify(journal, id, None).wait().unwrap().decided);
        assert_eq!(rebuild(journal, id).wait(), Ok(()));
    }
    assert_eq!(home.continuation(tree.id()).await, Ok(Some(id)));
    // A continuation is continued like any tree.
    let third = home.resume(continued(&home, id).await).await.unwrap();
    says(&third, "anything else").await;
    assert_eq!(answer(&third).await, "green too");
}

/// Only one tree gets what is left.
#[tokio::test(start_paused = true)]
async fn a_tree_is_continued_once() {
    let stage = TestHome::new(TALKS);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    answer(&tree).await;
    let id = continued(&home, tree.id()).await;
    let again = home.continue_ended(home.draw_id(), tree.id(), ContinuedAs::Before).await;
    assert!(
        matches!(&again, Err(BranchError::Journal(JournalFault::KeyTaken { tree, .. })) if *tree == id),
        "{again:?}"
    );
    assert_eq!(stage.journal().heads(&[]).wait().unwrap().len(), 2);
}

/// Killed between its first batch and its message, or in the middle of its turn, it goes on and pays once.
#[tokio::test(start_paused = true)]
async fn a_continuation_survives_kills() {
    let stage = TestHome::new(&format!(
        "lost: presumed\n{}",
        TALKS.replace("- { say: blue }", "- { think_ms: 1000, say: blue }")
    ));
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    answer(&tree).await;
    let id = continued(&home, tree.id()).await;
    home.shutdown(Shutdown::Kill).await;
    let home = stage.home();
    let other = home.resume(id).await.unwrap();
    says(&other, "what else").await;
    stage.model().until_out(1).await;
    home.shutdown(Shutdown::Kill).await;
    let home = stage.home();
    let other = home.resume(id).await.unwrap();
    assert_eq!(answer(&other).await, "blue");
    assert!(verify(stage.journal().as_ref(), id, None).wait().unwrap().decided);
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_has_not_ended_is_not_continued() {
    let stage = TestHome::new("rules: [{ think_ms: 1000, say: blue }]");
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    let refused = home.continue_ended(home.draw_id(), tree.id(), ContinuedAs::Before).await;
    assert!(matches!(&refused, Err(BranchError::Refused(Refusal::NotEndedYet { .. }))), "{refused:?}");
    tree.ended().await;
}

/// A tree whose time ran out while its model worked has none left, and a tree that has some gets no more than that.
#[tokio::test(start_paused = true)]
async fn what_is_left_of_the_time_is_left_for_the_continuation() {
    let stage = TestHome::new("rules: [{ think_ms: 60000, say: blue }]");
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5 timeout=5s").await;
    tree.ended().await;
    let refused = home.continue_ended(home.draw_id(), tree.id(), ContinuedAs::Before).await;
    assert!(
        matches!(&refused, Err(BranchError::Refused(Refusal::CannotContinue { reason })) if reason.contains("used up")),
        "{refused:?}"
    );
    let stage = TestHome::new(
        "rules: [{ when: { last_contains: xyzzy }, think_ms: 4000, say: late }, { think_ms: 3000, say: blue }]",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5 timeout=5s").await;
    assert_eq!(answer(&tree).await, "blue");
    let other = home.resume(continued(&home, tree.id()).await).await.unwrap();
    says(&other, "xyzzy").await;
    other.ended().await;
    let end = other.snapshot().await.unwrap().end.unwrap();
    assert!(!end.exit.is_success(), "{end:?}");
}
