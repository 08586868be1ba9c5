//! Removing a tree that branches use.

use spinney_kernel::world::TreeState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spinney::{Home, Orphan, RemoveError, Tree};
use spinney_journal::{
    Append, Batch, Blocking, Entry, HeadCursor, HeadPage, Journal, JournalFault, JournalLayer, Reading,
    Shared, pages,
};
use spinney_kernel::primitives::{Actor, CheckpointKind, Seq, TreeId};
use spinney_kernel::record::{Event, ExitKind};
use spinney_kernel::rules::request::{Checkpoint, Request};
use spinney_kernel::rules::{Input, InputKind};
use spinney_testkit::{TestHome, conformance};

const ASKS: &str =
    "rules: [{ when: { turn: 1 }, call: [{ tool: ask_human, args: { question: Which? } }] }, { say: done }]";

/// A journal that can fail to list trees.
struct Blind {
    inner: Arc<dyn Journal>,
    blind: AtomicBool,
}

impl JournalLayer for Blind {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn head_page(&self, states: &[TreeState], after: HeadCursor, heads_max: usize) -> Reading<HeadPage> {
        if self.blind.load(Ordering::Relaxed) {
            let fault = JournalFault::Failed { reason: "the disk does not answer".to_owned() };
            return Box::pin(std::future::ready(Err(fault)));
        }
        self.inner.head_page(states, after, heads_max)
    }
}

/// A branch as the store knows it, of a tree that is not running.
fn branch(journal: &dyn Journal, origin: &Tree, number: u8, state: TreeState) -> TreeId {
    let tree = TreeId::new([number; 16]);
    let agent: spinney_kernel::primitives::AgentId = "root".parse().unwrap();
    let name = format!("start-of-{number}").parse().unwrap();
    let made = Event::CheckpointMade { agent: agent.clone(), name, kind: CheckpointKind::Branch, number: 0 };
    let what = InputKind::Request {
        by: Actor::PERSON,
        request: Box::new(Request::Checkpoint(Checkpoint::manual(agent, None))),
    };
    let entries = journal.read(origin.id(), Seq(0), usize::MAX).wait().unwrap();
    let last = entries.last().unwrap();
    let input = Input { now: last.batch.input.now, draw: 1, what };
    let batch = Batch { input, events: vec![made] };
    let append =
        Append { base: Some(origin.id()), state, ..conformance::append_for(tree, last.end(), &batch) };
    conformance::append(journal, append).unwrap();
    tree
}

fn all(journal: &dyn Journal, tree: TreeId) -> Vec<Entry> {
    pages(journal, tree, Seq(0)).blocking().flat_map(Result::unwrap).collect()
}

async fn waiting(stage: &TestHome) -> (Home, Tree) {
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5").await;
    tree.settled().await;
    home.shutdown(spinney::Shutdown::Stop).await;
    (stage.home(), tree)
}

/// P27: a tree with two branches, one running and one ended, is not removed, and the refusal names both. With force it
/// is removed, both branches keep everything, and the running one is notified.
#[tokio::test(start_paused = true)]
async fn p27_a_tree_that_two_branches_use_is_removed_only_by_force_and_they_are_notified() {
    let stage = TestHome::new(ASKS);
    let (home, tree) = waiting(&stage).await;
    let journal = stage.journal().as_ref();
    let (living, ended) = (
        branch(journal, &tree, 1, TreeState::Waiting),
        branch(journal, &tree, 2, TreeState::Ended(ExitKind::Completed)),
    );
    let refused = home.remove(tree.id(), Shared::Refuse).await;
    let in_use = JournalFault::InUse { tree: tree.id(), by: vec![living, ended] };
    let words = in_use.to_string();
    assert!([living, ended].iter().all(|tree| words.contains(&tree.to_string())), "{words}");
    assert_eq!(refused, Err(RemoveError::Journal(in_use)));
    let before = all(journal, ended);
    let orphans = home.remove(tree.id(), Shared::HandOver).await;
    let expected = vec![Orphan { tree: living, notified: true }, Orphan { tree: ended, notified: false }];
    assert_eq!((orphans, journal.head(tree.id()).wait()), (Ok(expected), Ok(None)));
    assert_eq!(all(journal, ended), before);
    let events = all(journal, living);
    let message = events.iter().flat_map(|entry| &entry.batch.events).find_map(|event| {
        if let Event::MessageSent { body, .. } = event { Some(body.text.clone()) } else { None }
    });
    assert!(message.is_some_and(|text| text.contains(&tree.id().to_string())));
}

/// P27: if the branches of a tree cannot be listed, it stays.
#[tokio::test(start_paused = true)]
async fn p27_nothing_is_removed_if_the_check_fails() {
    let inner = Arc::clone(TestHome::new(ASKS).journal());
    let blind = Arc::new(Blind { inner, blind: AtomicBool::new(false) });
    let stage = TestHome::on(Arc::<Blind>::clone(&blind) as Arc<dyn Journal>, ASKS);
    let (home, tree) = waiting(&stage).await;
    let before = blind.inner.head(tree.id()).wait().unwrap();
    blind.blind.store(true, Ordering::Relaxed);
    for shared in [Shared::Refuse, Shared::HandOver] {
        let failed = home.remove(tree.id(), shared).await;
        assert!(matches!(failed, Err(RemoveError::Journal(JournalFault::Failed { .. }))), "{failed:?}");
    }
    assert_eq!(blind.inner.head(tree.id()).wait().unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_runs_is_not_removed() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5").await;
    tree.settled().await;
    let running = Err(RemoveError::Running { tree: tree.id() });
    assert_eq!(home.remove(tree.id(), Shared::HandOver).await, running);
    tree.cancel("root".parse().unwrap(), "enough").await.unwrap();
    tree.ended().await;
    home.shutdown(spinney::Shutdown::Drain).await;
    assert_eq!(home.remove(tree.id(), Shared::Refuse).await, Ok(Vec::new()));
}
