//! Branches: a new tree from a position in another one, with its own events and budget.

use std::sync::Arc;
use std::time::Duration;

use spinney::tree::{BranchError, BranchOff, verify};
use spinney::{Home, Shutdown, Tree};
use spinney_journal::{
    Base, Blocking, CatalogKind, Entry, Journal, JournalFault, checkpoints, pages, rebuild,
};
use spinney_kernel::budget::{Amounts, Ceilings, Resource};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{AgentId, CallId, CheckpointKind, CheckpointName, Seq, TreeId};
use spinney_kernel::record::{Event, ExitKind};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, settled};

use crate::failing_journal::Full;

const ASKS: &str = "rules: [{ when: { turn: 1 }, call: [{ tool: ask_human, args: { question: Which? } }] }, { say: \"{{ last }} it is\" }]";

fn root() -> AgentId {
    "root".parse().unwrap()
}

fn dollars(count: u64) -> Ceilings {
    Ceilings::NONE.with(Resource::Cost, count * 1_000_000_000)
}

fn all(journal: &dyn Journal, tree: TreeId) -> Vec<Entry> {
    pages(journal, tree, Seq(0)).blocking().flat_map(Result::unwrap).collect()
}

fn events(journal: &dyn Journal, tree: TreeId) -> Vec<Event> {
    all(journal, tree).into_iter().flat_map(|entry| entry.batch.events).collect()
}

/// The position of a checkpoint.
fn place(journal: &dyn Journal, name: &CheckpointName) -> Seq {
    let listed = checkpoints(journal, None).wait().unwrap();
    listed.into_iter().find(|listed| listed.name == *name).unwrap().known.seq
}

/// Branches from a checkpoint that is made now.
async fn branch(stage: &TestHome, home: &Home, tree: &Tree, budget: Ceilings) -> Result<TreeId, BranchError> {
    let name = tree.checkpoint(root(), None).await.unwrap();
    let (id, at) = (home.draw_id(), place(stage.journal().as_ref(), &name));
    home.branch(id, BranchOff { from: tree.id(), at, agent: root(), budget }).await.map(|()| id)
}

fn spent(snapshot: &spinney::tree::TreeSnapshot) -> Amounts {
    snapshot.agents[0].spent
}

/// P24: a branch has its lineage, and changes in either tree do not show in the other.
#[tokio::test(start_paused = true)]
async fn p24_a_branch_and_its_origin_go_their_own_ways() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    let before = settled(&tree).await;
    let id = branch(&stage, &home, &tree, dollars(2)).await.unwrap();
    let journal = stage.journal().as_ref();
    let origin = all(journal, tree.id());
    let at = origin.last().unwrap().end();
    let head = journal.head(id).wait().unwrap().unwrap();
    assert_eq!((head.base, head.state), (Some(Base { tree: tree.id(), at }), TreeState::Suspended));
    let other = home.resume(id).await.unwrap();
    let snapshot = settled(&other).await;
    // Nothing is spent yet, and there are two dollars.
    assert_eq!(
        (spent(&snapshot), snapshot.agents[0].limit.unwrap().get(Resource::Cost)),
        (Amounts::ZERO, Some(2_000_000_000))
    );
    assert!(spent(&before).get(Resource::Cost) > 0);
    other.answer(CallId(2), "blue").await.unwrap();
    other.ended().await;
    assert_eq!(all(journal, tree.id()), origin);
    tree.answer(CallId(2), "crimson").await.unwrap();
    tree.ended().await;
    let said = |tree: TreeId, word: &str| format!("{:?}", events(journal, tree)).contains(word);
    assert_eq!(
        [said(id, "blue"), said(id, "crimson"), said(tree.id(), "blue"), said(tree.id(), "crimson")],
        [true, false, false, true]
    );
    // Both match their journals, decided again from the first event.
    for tree in [tree.id(), id] {
        let verified = verify(journal, tree, None).wait().unwrap();
        assert!(verified.decided, "{tree}");
        let before = journal.catalog(CatalogKind::Checkpoint, "").wait().unwrap();
        assert_eq!(rebuild(journal, tree).wait(), Ok(()));
        assert_eq!(journal.catalog(CatalogKind::Checkpoint, "").wait().unwrap(), before);
    }
    // Its model was called once in the branch; nothing else was paid.
    let snapshot = other.snapshot().await.unwrap();
    assert_eq!(spent(&snapshot).get(Resource::Steps), 1);
    let kinds: Vec<CheckpointKind> =
        checkpoints(journal, None).wait().unwrap().into_iter().map(|listed| listed.known.kind).collect();
    assert!(kinds.contains(&CheckpointKind::Manual) && kinds.contains(&CheckpointKind::Branch), "{kinds:?}");
}

/// P24: a call that ran in the origin is started again in the branch, and paid once.
#[tokio::test(start_paused = true)]
async fn p24_a_branch_in_the_middle_of_a_turn_takes_it_again_and_pays_once() {
    let stage = TestHome::new("lost: presumed\nrules: [{ think_ms: 1000, say: thought }]");
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    stage.model().until_out(1).await;
    let id = branch(&stage, &home, &tree, dollars(1)).await.unwrap();
    assert_eq!(stage.model().out(), 1);
    let journal = stage.journal().as_ref();
    let words: Vec<String> =
        all(journal, id).pop().unwrap().batch.events.iter().map(|event| event.as_str().to_owned()).collect();
    insta::assert_snapshot!(words.join(" "), @"tree_branched tree_suspended attempt_failed call_waiting checkpoint_made");
    let other = home.resume(id).await.unwrap();
    stage.model().until_out(2).await;
    let (one, two) = (tree.ended().await, other.ended().await);
    assert_eq!([one.state, two.state], [TreeState::Ended(ExitKind::Completed); 2]);
    let steps = |snapshot: spinney::tree::TreeSnapshot| spent(&snapshot).get(Resource::Steps);
    assert_eq!([steps(tree.snapshot().await.unwrap()), steps(other.snapshot().await.unwrap())], [1, 1]);
    assert_eq!(spent(&tree.snapshot().await.unwrap()), spent(&other.snapshot().await.unwrap()));
    assert!(verify(journal, id, None).wait().unwrap().decided);
}

/// P24: a branch of a branch, after both of them crashed.
#[tokio::test(start_paused = true)]
async fn p24_a_branch_of_a_branch_survives_a_crash() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    tree.settled().await;
    let second = branch(&stage, &home, &tree, dollars(2)).await.unwrap();
    let second = home.resume(second).await.unwrap();
    second.settled().await;
    let third = branch(&stage, &home, &second, dollars(3)).await.unwrap();
    home.shutdown(Shutdown::Kill).await;
    let home = stage.home();
    let resumed = home.recover().await.unwrap();
    assert_eq!(resumed.len(), 3);
    for (id, tree) in resumed {
        let tree = tree.unwrap();
        let snapshot = settled(&tree).await;
        let limit = snapshot.agents[0].limit.unwrap().get(Resource::Cost).unwrap() / 1_000_000_000;
        assert_eq!((id == second.id(), id == third), (limit == 2, limit == 3));
        tree.answer(CallId(2), "yes").await.unwrap();
        assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
        assert!(verify(stage.journal().as_ref(), id, None).wait().unwrap().decided);
    }
}

#[tokio::test(start_paused = true)]
async fn a_branch_has_as_much_time_left_as_its_origin_had() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5 wall=60s").await;
    tree.settled().await;
    let name = tree.checkpoint(root(), None).await.unwrap();
    let at = place(stage.journal().as_ref(), &name);
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(tree.status().state, TreeState::Ended(ExitKind::Failed));
    let id = home.draw_id();
    home.branch(id, BranchOff { from: tree.id(), at, agent: root(), budget: dollars(1) }).await.unwrap();
    let other = home.resume(id).await.unwrap();
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(other.status().state, TreeState::Waiting);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(other.status().state, TreeState::Ended(ExitKind::Failed));
    assert!(verify(stage.journal().as_ref(), id, None).wait().unwrap().decided);
}

#[tokio::test(start_paused = true)]
async fn a_branch_that_cannot_be_leaves_no_trace() {
    let inner = Arc::clone(TestHome::new(ASKS).journal());
    let stage = TestHome::on(Arc::new(Full::new(inner, 3)), ASKS);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    tree.settled().await;
    let name = tree.checkpoint(root(), None).await.unwrap();
    let at = place(stage.journal().as_ref(), &name);
    let off =
        |at, agent: &str, budget| BranchOff { from: tree.id(), at, agent: agent.parse().unwrap(), budget };
    let id = home.draw_id();
    let refused = |refusal| Err(BranchError::Refused(refusal));
    let unknown = Refusal::UnknownAgent { agent: "nobody".parse().unwrap() };
    assert_eq!(home.branch(id, off(at, "nobody", dollars(1))).await, refused(unknown));
    assert_eq!(home.branch(id, off(at, "root", Ceilings::NONE)).await, refused(Refusal::BranchWithoutBudget));
    let middle = JournalFault::NotABoundary { tree: tree.id(), at: 2 };
    assert_eq!(home.branch(id, off(Seq(2), "root", dollars(1))).await, Err(BranchError::Journal(middle)));
    let full = Err(BranchError::Journal(JournalFault::Full));
    assert_eq!(home.branch(id, off(at, "root", dollars(1))).await, full);
    assert_eq!(stage.journal().head(id).wait(), Ok(None));
    assert_eq!(checkpoints(stage.journal().as_ref(), None).wait().unwrap().len(), 1);
}
