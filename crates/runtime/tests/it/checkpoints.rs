//! Checkpoints: named positions, in one index of the home.

use spinney::Shutdown;
use spinney::tree::{ApplyError, RequestError};
use spinney_journal::{
    Blocking, CatalogKind, Claim, Journal, ListedCheckpoint, Reservation, checkpoints, rebuild,
};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::limit::CHECKPOINT_EVERY_TURNS;
use spinney_kernel::primitives::{AgentId, CheckpointKind, CheckpointName, TreeId};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::{Checkpoint, CheckpointReply};
use spinney_testkit::{TestHome, recorded};

use crate::name;

const ASKS: &str =
    "rules: [{ when: { turn: 1 }, call: [{ tool: ask_human, args: { question: Which? } }] }, { say: done }]";

fn root() -> AgentId {
    "root".parse().unwrap()
}

fn all(journal: &dyn Journal) -> Vec<ListedCheckpoint> {
    checkpoints(journal, None).wait().unwrap()
}

/// P25: both agents are listed, and the index matches the journals.
#[tokio::test(start_paused = true)]
async fn p25_one_index_lists_the_checkpoints_of_all_trees_by_agent() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let (one, two) = (stage.start(&home, "root turns=5").await, stage.start(&home, "root turns=5").await);
    one.settled().await;
    two.settled().await;
    assert_eq!(one.checkpoint(root(), Some(name("a"))).await, Ok(name("a")));
    let drawn = two.checkpoint(root(), None).await.unwrap();
    let journal = stage.journal().as_ref();
    let listed = checkpoints(journal, Some(&root())).wait().unwrap();
    let mut found: Vec<(CheckpointName, TreeId)> =
        listed.iter().map(|listed| (listed.name.clone(), listed.tree)).collect();
    found.sort_by_key(|(_, tree)| *tree != one.id());
    assert_eq!(found, [(name("a"), one.id()), (drawn, two.id())]);
    assert_eq!(checkpoints(journal, Some(&"other".parse().unwrap())).wait(), Ok(Vec::new()));
    for tree in [one.id(), two.id()] {
        assert_eq!(rebuild(journal, tree).wait(), Ok(()));
    }
    assert_eq!(checkpoints(journal, Some(&root())).wait().unwrap(), listed);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_given_once_in_a_home() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let (one, two) = (stage.start(&home, "root turns=5").await, stage.start(&home, "root turns=5").await);
    one.settled().await;
    two.settled().await;
    // Both are requested at the same time: one of them comes second.
    let (first, second) =
        tokio::join!(one.checkpoint(root(), Some(name("x"))), two.checkpoint(root(), Some(name("x"))));
    let taken = |tree| Err(RequestError::Refused(Refusal::NameTaken { name: name("x"), tree }));
    assert!(
        (first == Ok(name("x")) && second == taken(one.id()))
            || (second == Ok(name("x")) && first == taken(two.id())),
        "{first:?} {second:?}"
    );
    let owner = all(stage.journal().as_ref())[0].tree;
    for tree in [&one, &two] {
        assert_eq!(tree.checkpoint(root(), Some(name("x"))).await, taken(owner));
    }
    let unknown = RequestError::Refused(Refusal::UnknownAgent { agent: "nobody".parse().unwrap() });
    assert_eq!(one.checkpoint("nobody".parse().unwrap(), Some(name("y"))).await, Err(unknown));
    // A name whose request failed can be used again.
    assert_eq!(two.checkpoint(root(), Some(name("y"))).await, Ok(name("y")));
    assert!(one.status().stopped.is_none() && two.status().stopped.is_none());
}

/// P22 (names after a kill): a process dies after it reserved a name and before the event. Resuming the tree frees the
/// name, for requests to running trees and to others.
#[tokio::test(start_paused = true)]
async fn a_name_that_a_dead_process_reserved_is_free_when_its_tree_is_resumed() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let (one, two) = (stage.start(&home, "root turns=5").await, stage.start(&home, "root turns=5").await);
    one.settled().await;
    two.settled().await;
    let journal = stage.journal();
    for key in ["x", "y"] {
        let reserved = journal.reserve(Claim::first(one.id()), CatalogKind::Checkpoint, key).await;
        assert_eq!(reserved, Ok(Reservation::Reserved));
    }
    home.shutdown(Shutdown::Kill).await;
    let home = stage.home();
    let two = home.resume(two.id()).await.unwrap();
    let taken = RequestError::Refused(Refusal::NameTaken { name: name("x"), tree: one.id() });
    assert_eq!(two.checkpoint(root(), Some(name("x"))).await, Err(taken));
    let made = home.apply(one.id(), Checkpoint::manual(root(), Some(name("y")))).await;
    assert_eq!(made, Ok(CheckpointReply { name: name("y") }));
    assert_eq!(two.checkpoint(root(), Some(name("x"))).await, Ok(name("x")));
}

/// Two homes over one journal, as two processes over one store: a name is given once, and no append fails for it.
#[tokio::test(start_paused = true)]
async fn a_name_is_given_once_over_all_homes_of_a_journal() {
    let stage = TestHome::new(ASKS);
    let (first, second) = (stage.home(), stage.home());
    let (one, two) = (stage.start(&first, "root turns=5").await, stage.start(&first, "root turns=5").await);
    one.settled().await;
    two.settled().await;
    let two = second.resume(two.id()).await.unwrap();
    for number in 0..50 {
        let name: CheckpointName = name(&format!("n{number}"));
        let (a, b) = tokio::join!(
            one.checkpoint(root(), Some(name.clone())),
            two.checkpoint(root(), Some(name.clone()))
        );
        assert_eq!([&a, &b].into_iter().filter(|made| **made == Ok(name.clone())).count(), 1, "{a:?} {b:?}");
    }
    assert!(one.status().stopped.is_none() && two.status().stopped.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_is_not_running_is_left_unchanged() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5").await;
    tree.settled().await;
    home.shutdown(Shutdown::Stop).await;
    let home = stage.home();
    let before = stage.journal().head(tree.id()).wait().unwrap().unwrap();
    let request = |name: &str| Checkpoint::manual(root(), Some(self::name(name)));
    let made = home.apply(tree.id(), request("x")).await;
    assert_eq!(made, Ok(CheckpointReply { name: name("x") }));
    let after = stage.journal().head(tree.id()).wait().unwrap().unwrap();
    assert_eq!((after.seq.0, after.state), (before.seq.0 + 1, before.state));
    let taken = ApplyError::Refused(Refusal::NameTaken { name: name("x"), tree: tree.id() });
    assert_eq!(home.apply(tree.id(), request("x")).await, Err(taken));
}

/// Every tenth turn, after its tools have returned: the next event makes a checkpoint, and no event in between.
#[tokio::test(start_paused = true)]
async fn every_tenth_turn_leaves_an_automatic_checkpoint() {
    let stage = TestHome::new(
        "rules: [{ when: { turn: 25 }, say: done }, { call: [{ tool: look }] }]\ntools: { look: { think_ms: 5, say: seen } }",
    );
    let tree = stage.start(&stage.home(), "root turns=30").await;
    tree.ended().await;
    let listed = all(stage.journal().as_ref());
    let mut numbers: Vec<u32> = listed.iter().map(|listed| listed.known.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    assert!(listed.iter().all(|listed| listed.known.kind == CheckpointKind::Automatic));
    let events = recorded(&tree).await;
    let turns = events.iter().scan(0, |turns, recorded| {
        *turns += u32::from(recorded.event.as_str() == "call_asked");
        Some((*turns, recorded))
    });
    let at: Vec<u32> = turns
        .filter(|(_, recorded)| matches!(recorded.event, Event::CheckpointMade { .. }))
        .map(|(turns, _)| turns)
        .collect();
    // Each turn calls the model and a tool; the eleventh and the twenty-first were just requested.
    assert_eq!(at, [2 * CHECKPOINT_EVERY_TURNS + 1, 4 * CHECKPOINT_EVERY_TURNS + 1]);
}
