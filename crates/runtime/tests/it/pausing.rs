//! Pausing, resuming and cancelling one child, on the real runtime.

use std::time::Duration;

use spinney::tree::RequestError;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, AgentId};
use spinney_kernel::rules::request::{Collect, Spawn, SpawnReply};
use spinney_kernel::world::TreeState;
use spinney_testkit::{Scenario, TestHome, settled};

const WORKS: &str = "
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: ask_human, args: { question: 'Is it enough?' } } ]
  - { when: { agent: child, turn: 6 }, think_ms: 1000, say: All of it. }
  - { when: { agent: child }, think_ms: 1000, call: [ { tool: look } ] }
  - { say: done }
tools: { look: { think_ms: 1000, say: seen } }
";

/// P21: a paused child starts no further step, however long the pause is, and continues when it is resumed. A cancelled
/// one stops, resuming does not restart it, and giving its task again creates a new agent with a new id.
#[tokio::test(start_paused = true)]
async fn p21_a_paused_child_starts_nothing_and_a_cancelled_one_never_comes_back() {
    let stage = TestHome::new(WORKS);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=9 / child later turns=9 tools=look").await;
    let spawn = async |id: Option<&str>| {
        let id = id.map(|id| id.parse().unwrap());
        let spawn = Spawn { id, collect: Collect::Detached, ..Scenario::spawn("root", "child") };
        match tree.request(Actor::PERSON, spawn).await {
            Ok(SpawnReply { agent, .. }) => Ok(agent),
            Err(RequestError::Refused(refusal)) => Err(refusal),
            other => panic!("{other:?}"),
        }
    };
    let pass = |ms| tokio::time::sleep(Duration::from_millis(ms));
    let turns_of = |agent: &AgentId| {
        let attempts = stage.model().attempts();
        attempts.iter().filter(|attempt| attempt.origin.agent() == agent).count()
    };
    let status = async |agent: &AgentId| {
        let snapshot = tree.snapshot().await.unwrap();
        snapshot.agents.iter().find(|view| view.agent == *agent).unwrap().status.to_string()
    };

    let first = spawn(Some("first")).await.unwrap();
    pass(500).await;
    tree.pause(first.clone()).await.unwrap();
    // The running turn ends; the tool that it requests does not start.
    pass(3_600_000).await;
    assert_eq!((turns_of(&first), stage.model().out()), (1, 0));
    assert_eq!(status(&first).await, "paused");
    tree.unpause(first.clone()).await.unwrap();
    pass(60_000).await;
    assert_eq!((turns_of(&first), status(&first).await.as_str()), (6, "completed"));

    let second = spawn(Some("second")).await.unwrap();
    pass(500).await;
    tree.pause(second.clone()).await.unwrap();
    tree.cancel(second.clone(), "enough").await.unwrap();
    pass(60_000).await;
    assert_eq!((turns_of(&second), status(&second).await.as_str()), (1, "cancelled"));
    let gone = Refusal::AgentEnded { agent: second.clone(), state: "cancelled".to_owned() };
    assert_eq!(tree.unpause(second.clone()).await, Err(RequestError::Refused(gone)));
    assert_eq!(spawn(Some("second")).await, Err(Refusal::DuplicateId { agent: second.clone() }));
    let again = spawn(None).await.unwrap();
    assert_ne!(again, second);
    pass(60_000).await;
    assert_eq!((turns_of(&again), turns_of(&second)), (6, 1));
    assert_eq!(status(&second).await, "cancelled");
    assert_eq!(settled(&tree).await.state, TreeState::Waiting);
}
