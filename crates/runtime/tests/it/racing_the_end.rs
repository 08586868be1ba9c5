//! Requests that race with the end of their tree are always answered.

use std::time::Duration;

use spinney::budget::Amounts;
use spinney::tree::RequestError;
use spinney::{Home, Tree};
use spinney_kernel::definition::{Definition, Refusal};
use spinney_kernel::primitives::AgentId;
use spinney_kernel::record::ExitKind;
use spinney_kernel::rules::request::Raise;
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, definition};
use tokio::runtime::{Builder, Runtime};

const ROUNDS: usize = 100_000;
/// More threads than a small machine has cores: the race needs one to be preempted in the middle.
const CALLERS: usize = 4;
/// Trees per home, because a journal in memory keeps growing.
const ROUNDS_OF_A_HOME: usize = 500;
/// The longest time for an answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

const CANCELLED: TreeState = TreeState::Ended(ExitKind::Cancelled);

/// Another task ends the tree, and the waiting caller sends a request at once.
async fn round(home: &Home, definition: Definition, number: usize) {
    let tree = home.start(definition).await.unwrap();
    let ending = tree.clone();
    tokio::spawn(async move { ending.cancel(root(), "enough").await });
    assert_eq!(tree.ended().await.state, CANCELLED);
    let asked = async { if number.is_multiple_of(2) { look(&tree).await } else { request(&tree).await } };
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("no answer"));
}

async fn look(tree: &Tree) {
    assert_eq!(tree.snapshot().await.unwrap().state, CANCELLED);
}

async fn request(tree: &Tree) {
    let raised = tree.raise(Raise { agent: root(), add: Amounts::ZERO, add_ms: 0 }).await;
    assert_eq!(raised, Err(RequestError::Refused(Refusal::TreeEnded)));
}

fn root() -> AgentId {
    "root".parse().unwrap()
}

/// A thread beside those that run trees.
fn call(runtime: &Runtime, caller: usize) {
    let definition = definition("root");
    for part in 0..ROUNDS / CALLERS / ROUNDS_OF_A_HOME {
        let home =
            TestHome::new("rules: [{ hang: true }]").with_seed((part * CALLERS + caller) as u64).home();
        for number in 0..ROUNDS_OF_A_HOME {
            runtime.block_on(round(&home, definition.clone(), number));
        }
    }
}

/// Issue 15: `ended` and then `snapshot` hung about once in a thousand trees.
#[test]
fn whatever_is_asked_at_the_end_of_a_tree_is_answered_in_each_of_100_000_rounds() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    std::thread::scope(|scope| {
        let runtime = &runtime;
        for caller in 0..CALLERS {
            scope.spawn(move || call(runtime, caller));
        }
    });
}
