//! A stopped tree has its own state, different from a person's pause.

use spinney::tree::{BranchOff, verify};
use spinney::{Home, Shutdown, Tree};
use spinney_journal::{Append, Batch, Blocking, find, pages};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::primitives::{AgentId, Body, CheckpointName, Seq, TreeId};
use spinney_kernel::record::{Event, ExitKind};
use spinney_kernel::rules::request::{Checkpoint, Pause, Rollback, Send, Unpause};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, conformance, settled};

use crate::name;

/// Two slow turns, and an answer.
const WORKS: &str = "rules: [{ when: { turn: 3 }, say: done }, { think_ms: 100, say: more, call: [{ tool: list_agents }] }]\nlost: presumed";

fn root() -> AgentId {
    "root".parse().unwrap()
}

fn state(stage: &TestHome, tree: TreeId) -> TreeState {
    stage.journal().head(tree).wait().unwrap().unwrap().state
}

/// A journal of a tree that version 0.1.0 stopped: it paused the root, and only the head shows that no person did.
fn stopped_by_an_older_version(stage: &TestHome) -> TreeId {
    let (tree, mut after) = ("01a1e378a448910abeeb8da1658eec67".parse().unwrap(), Seq(0));
    for line in include_str!("stopped_under_rules_3.jsonl").lines() {
        let mut batch: Batch = serde_json::from_str(line).unwrap();
        batch.unfold();
        let append = Append { state: TreeState::Suspended, ..conformance::append_for(tree, after, &batch) };
        conformance::append(stage.journal().as_ref(), append).unwrap();
        after = Seq(after.0 + batch.events.len() as u64);
    }
    tree
}

/// A tree that was stopped in its first turn.
async fn stopped(stage: &TestHome) -> (Home, Tree) {
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9").await;
    home.shutdown(Shutdown::Stop).await;
    (stage.home(), tree)
}

/// Branches from a checkpoint.
async fn branch(stage: &TestHome, home: &Home, from: TreeId, at: &CheckpointName) -> TreeId {
    let at = find(stage.journal().as_ref(), at).wait().unwrap().unwrap().known.seq;
    let (id, budget) = (home.draw_id(), Ceilings::NONE.with(Resource::Cost, 1_000_000_000));
    home.branch(id, BranchOff { from, at, agent: root(), budget }).await.unwrap();
    id
}

/// Resumes a tree, which then runs to its end.
async fn completes(stage: &TestHome, home: &Home, tree: TreeId) {
    let tree = home.resume(tree).await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    assert!(verify(stage.journal().as_ref(), tree.id(), None).wait().unwrap().decided);
}

fn events(stage: &TestHome, tree: TreeId) -> Vec<Event> {
    let entries = pages(stage.journal().as_ref(), tree, Seq(0)).blocking().flat_map(Result::unwrap);
    entries.flat_map(|entry| entry.batch.events).collect()
}

#[tokio::test(start_paused = true)]
async fn a_stop_pauses_no_agent() {
    let stage = TestHome::new(WORKS);
    let (home, tree) = stopped(&stage).await;
    assert_eq!((tree.status().state, state(&stage, tree.id())), (TreeState::Suspended, TreeState::Suspended));
    completes(&stage, &home, tree.id()).await;
    assert!(!events(&stage, tree.id()).iter().any(|event| matches!(event, Event::AgentPaused { .. })));
}

/// P24: a branch of a stopped tree is ready to run.
#[tokio::test(start_paused = true)]
async fn p24_a_branch_of_a_stopped_tree_continues_when_resumed() {
    let stage = TestHome::new(WORKS);
    let (home, tree) = stopped(&stage).await;
    home.apply(tree.id(), Checkpoint::manual(root(), Some(name("then")))).await.unwrap();
    let id = branch(&stage, &home, tree.id(), &name("then")).await;
    assert_eq!(state(&stage, id), TreeState::Suspended);
    completes(&stage, &home, id).await;
    completes(&stage, &home, tree.id()).await;
}

/// P24: the same from the checkpoint that a rollback makes automatically, while no process runs the tree.
#[tokio::test(start_paused = true)]
async fn p24_a_branch_at_a_rollbacks_checkpoint_continues_when_resumed() {
    let stage = TestHome::new(
        "rules: [{ when: { turn: 1 }, call: [{ tool: ask_human, args: { question: Which? } }] }, { say: done }]",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9").await;
    tree.settled().await;
    tree.checkpoint(root(), Some(name("then"))).await.unwrap();
    home.shutdown(Shutdown::Stop).await;
    let home = stage.home();
    home.apply(tree.id(), Send::plain(root(), Body::text("hurry"))).await.unwrap();
    let at = find(stage.journal().as_ref(), &name("then")).wait().unwrap().unwrap().known.seq;
    let back = home.apply(tree.id(), Rollback::to(root(), at, None)).await.unwrap();
    let id = branch(&stage, &home, tree.id(), &back.prior).await;
    assert_eq!(state(&stage, id), TreeState::Suspended);
    let other = home.resume(id).await.unwrap();
    let question = settled(&other).await.questions[0].question;
    other.answer(question, "this").await.unwrap();
    assert_eq!(other.ended().await.state, TreeState::Ended(ExitKind::Completed));
    assert!(verify(stage.journal().as_ref(), id, None).wait().unwrap().decided);
}

/// P24: branches of a paused tree are paused.
#[tokio::test(start_paused = true)]
async fn p24_a_branch_of_a_tree_that_a_person_paused_is_paused() {
    let stage = TestHome::new(WORKS);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9").await;
    tree.pause(root()).await.unwrap();
    assert_eq!(settled(&tree).await.state, TreeState::Paused);
    tree.checkpoint(root(), Some(name("then"))).await.unwrap();
    let id = branch(&stage, &home, tree.id(), &name("then")).await;
    assert_eq!(state(&stage, id), TreeState::Paused);
    let other = home.resume(id).await.unwrap();
    assert_eq!(settled(&other).await.state, TreeState::Paused);
    other.unpause(root()).await.unwrap();
    assert_eq!(other.ended().await.state, TreeState::Ended(ExitKind::Completed));
}

/// A person's pause and a stop are independent: neither ends the other.
#[tokio::test(start_paused = true)]
async fn a_stopped_tree_can_be_paused_and_unpaused() {
    let stage = TestHome::new(WORKS);
    let (home, tree) = stopped(&stage).await;
    home.apply(tree.id(), Pause { agent: root() }).await.unwrap();
    assert_eq!(state(&stage, tree.id()), TreeState::Paused);
    let resumed = home.resume(tree.id()).await.unwrap();
    assert_eq!(settled(&resumed).await.state, TreeState::Paused);
    home.shutdown(Shutdown::Stop).await;
    let home = stage.home();
    home.apply(tree.id(), Unpause::now(root())).await.unwrap();
    assert_eq!(state(&stage, tree.id()), TreeState::Suspended);
    completes(&stage, &home, tree.id()).await;
}

/// S9 (stopped by an older version): the tree continues without being unpaused.
#[tokio::test(start_paused = true)]
async fn a_tree_that_an_older_version_stopped_continues_when_resumed() {
    let stage = TestHome::new(WORKS);
    let tree = stopped_by_an_older_version(&stage);
    completes(&stage, &stage.home(), tree).await;
}

/// P24 (stopped by an older version): the tree stays stopped after requests that resume nothing, and so does a branch
/// of it.
#[tokio::test(start_paused = true)]
async fn a_tree_that_an_older_version_stopped_can_be_steered_and_paused() {
    let stage = TestHome::new(WORKS);
    let (home, tree) = (stage.home(), stopped_by_an_older_version(&stage));
    home.apply(tree, Send::plain(root(), Body::text("hurry"))).await.unwrap();
    assert_eq!(state(&stage, tree), TreeState::Suspended);
    home.apply(tree, Checkpoint::manual(root(), Some(name("then")))).await.unwrap();
    let id = branch(&stage, &home, tree, &name("then")).await;
    assert_eq!(state(&stage, id), TreeState::Suspended);
    completes(&stage, &home, id).await;
    home.apply(tree, Pause { agent: root() }).await.unwrap();
    assert_eq!(state(&stage, tree), TreeState::Paused);
    let resumed = home.resume(tree).await.unwrap();
    assert_eq!(settled(&resumed).await.state, TreeState::Paused);
    resumed.unpause(root()).await.unwrap();
    assert_eq!(resumed.ended().await.state, TreeState::Ended(ExitKind::Completed));
    assert!(verify(stage.journal().as_ref(), tree, None).wait().unwrap().decided);
}
