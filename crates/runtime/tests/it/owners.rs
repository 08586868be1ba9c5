//! Two homes over one journal: a tree belongs to the one that claimed it last.

use spinney::tree::{RequestError, Stopped, verify};
use spinney::{ResumeError, Shutdown, Tree};
use spinney_journal::{Blocking, JournalFault};
use spinney_kernel::primitives::CallId;
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, settled};

/// A root that asks a person, and works for a while when it has the answer.
const ASKS: &str = "
rules:
  - { when: { turn: 1 }, call: [ { tool: ask_human, args: { question: Which? } } ] }
  - { think_ms: 100, say: done }
";

async fn asking(stage: &TestHome, home: &spinney::Home) -> (Tree, CallId) {
    let tree = stage.start(home, "root $9.00 turns=9").await;
    let question = settled(&tree).await.questions[0].question;
    (tree, question)
}

fn owned(tree: &Tree) -> JournalFault {
    JournalFault::Owned { tree: tree.id() }
}

/// G20, G30 (owners): the old owner stops the claimed tree when it writes, and only that one. The new owner finishes it, and
/// each call is made once.
#[tokio::test(start_paused = true)]
async fn a_claimed_tree_stops_at_its_old_owner_and_no_other_does() {
    let stage = TestHome::new(ASKS);
    let (old, new) = (stage.home(), stage.home());
    let ((lost, question), (kept, other)) = (asking(&stage, &old).await, asking(&stage, &old).await);
    let taken = new.resume(lost.id()).await.unwrap();
    let late = lost.answer(question, "blue").await;
    assert_eq!(late, Err(RequestError::Stopped(Stopped::Journal(owned(&lost)))));
    assert_eq!(lost.ended().await.stopped, Some(Stopped::Journal(owned(&lost))));
    let calls = stage.model().attempts().len();
    assert_eq!(calls, 2, "the answer that was not written called no model");
    taken.answer(question, "red").await.unwrap();
    kept.answer(other, "green").await.unwrap();
    for tree in [&taken, &kept] {
        let end = tree.ended().await;
        assert_eq!((end.state, end.stopped), (TreeState::Ended(ExitKind::Completed), None));
        assert!(verify(stage.journal().as_ref(), tree.id(), None).wait().unwrap().decided);
    }
    assert_eq!(stage.model().attempts().len(), calls + 2);
    old.shutdown(Shutdown::Stop).await;
}

/// A call that ran when its tree was claimed is lost there and handled by the rules of a crash here.
#[tokio::test(start_paused = true)]
async fn what_ran_at_the_old_owner_is_lost_for_the_new_one() {
    let stage = TestHome::new("rules: [{ think_ms: 100, say: done }]");
    let (old, new) = (stage.home(), stage.home());
    let lost = stage.start(&old, "root $9.00 turns=9").await;
    let taken = new.resume(lost.id()).await.unwrap();
    assert_eq!(lost.ended().await.stopped, Some(Stopped::Journal(owned(&lost))));
    let end = taken.ended().await;
    assert!(matches!(end.state, TreeState::Ended(_)), "{end:?}");
    assert!(verify(stage.journal().as_ref(), taken.id(), None).wait().unwrap().decided);
}

/// Whatever a home does with a tree that it does not run, it does as its owner.
#[tokio::test(start_paused = true)]
async fn requests_and_removals_claim_the_tree() {
    let stage = TestHome::new(ASKS);
    let (old, new) = (stage.home(), stage.home());
    let (tree, question) = asking(&stage, &old).await;
    let send = spinney_kernel::rules::request::Send::plain(
        "root".parse().unwrap(),
        spinney_kernel::primitives::Body::text("hello"),
    );
    new.apply(tree.id(), send).await.unwrap();
    let late = tree.answer(question, "blue").await;
    assert_eq!(late, Err(RequestError::Stopped(Stopped::Journal(owned(&tree)))));

    let (tree, question) = asking(&stage, &old).await;
    new.remove(tree.id(), spinney_journal::Shared::Refuse).await.unwrap();
    let late = tree.answer(question, "blue").await;
    assert!(matches!(late, Err(RequestError::Stopped(Stopped::Journal(_)))), "{late:?}");
    let gone = new.resume(tree.id()).await.err();
    let unknown = JournalFault::UnknownTree { tree: tree.id() };
    assert_eq!(gone, Some(ResumeError::Journal(unknown)));
}
