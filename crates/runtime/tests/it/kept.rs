//! A root that is kept: after each answer it waits for a person, and a person ends it.

use std::sync::Arc;
use std::time::Duration;

use spinney::request::{Conclude, Redirect, Send};
use spinney::tree::{OpenQuestion, RequestError};
use spinney::{Drivers, Home, Tree, TreeFile};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, Body, Running};
use spinney_kernel::record::{Event, Exit};
use spinney_kernel::world::TreeState;
use spinney_store::MemoryJournal;
use spinney_testkit::scripted::Script;
use spinney_testkit::{recorded, settled};

const SCRIPT: &str = "
rules:
- { when: { last_contains: louder }, say: HELLO }
- { when: { last_contains: again }, say: hello again }
- { think_ms: 1000, say: hello }
";

async fn started(is_kept: bool) -> Tree {
    let file = "
name: talk
goal: Say hello.
budget: { cost_usd: 1, timeout: 5s }
models: { m: { provider: scripted, script: none, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } } }
agents:
  lead: { model: m }
entry: lead
";
    let mut definition = TreeFile::parse("tree.yaml", file).unwrap().definition;
    definition.is_kept = is_kept;
    let model = Script::parse("s.yaml", SCRIPT).unwrap().model();
    let drivers = Drivers::new().with_model("m".parse().unwrap(), Arc::new(model));
    Home::open(Arc::new(MemoryJournal::new()), drivers).start(definition).await.unwrap()
}

/// The wait after its answer.
async fn waits(tree: &Tree) -> OpenQuestion {
    loop {
        let snapshot = settled(tree).await;
        if let Some(question) = snapshot.questions.into_iter().find(|question| question.is_after_answer) {
            assert_eq!(snapshot.state, TreeState::Waiting);
            return question;
        }
    }
}

/// How it ended, and with which result.
async fn end(tree: &Tree) -> (Exit, String) {
    let end = tree.snapshot().await.unwrap().end.unwrap();
    (end.exit, end.shown.text)
}

#[tokio::test(start_paused = true)]
async fn a_kept_root_waits_for_a_person_until_it_is_concluded() {
    let tree = started(true).await;
    let first = waits(&tree).await;
    // The clocks stand still: an hour is more than its timeout.
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    tree.answer(first.question, "say it again".to_owned()).await.unwrap();
    let second = waits(&tree).await;
    assert_ne!(first.question, second.question);
    // A message continues it as well.
    let send = Send::plain("lead".parse().unwrap(), Body::text("louder".to_owned()));
    tree.request(Actor::PERSON, send).await.unwrap();
    let third = waits(&tree).await;
    let late = tree.answer(second.question, "late".to_owned()).await;
    assert!(matches!(late, Err(RequestError::Refused(Refusal::UnknownQuestion { .. }))), "{late:?}");
    tree.request(Actor::PERSON, Conclude { agent: "lead".parse().unwrap() }).await.unwrap();
    tree.ended().await;
    let events = recorded(&tree).await;
    assert_eq!(end(&tree).await, (Exit::Completed, "HELLO".to_owned()));
    let heard = events.iter().filter(|recorded| matches!(recorded.event, Event::MessageSent { .. })).count();
    assert_eq!((heard, third.path.len()), (2, 1));
}

/// After a month without a message it ends with its last answer.
#[tokio::test(start_paused = true)]
async fn a_kept_root_that_nobody_writes_to_ends_with_its_answer() {
    let tree = started(true).await;
    waits(&tree).await;
    tokio::time::sleep(Duration::from_secs(31 * 24 * 3_600)).await;
    tree.ended().await;
    assert_eq!(end(&tree).await, (Exit::Completed, "hello".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn only_an_agent_that_waits_after_an_answer_is_concluded() {
    let tree = started(false).await;
    let refused = tree.request(Actor::PERSON, Conclude { agent: "lead".parse().unwrap() }).await;
    let expected = Refusal::NothingToConclude { agent: "lead".parse().unwrap() };
    assert!(matches!(&refused, Err(RequestError::Refused(why)) if *why == expected), "{refused:?}");
    tree.ended().await;
}

/// A new instruction continues it at once.
#[tokio::test(start_paused = true)]
async fn a_kept_root_that_waits_is_redirected() {
    let tree = started(true).await;
    waits(&tree).await;
    let agent = || "lead".parse().unwrap();
    let (instruction, running) = ("louder".to_owned(), Running::Finishes);
    tree.redirect(Redirect { agent: agent(), instruction, tokens: None, running }).await.unwrap();
    waits(&tree).await;
    tree.request(Actor::PERSON, Conclude { agent: "lead".parse().unwrap() }).await.unwrap();
    assert_eq!(end(&tree).await.1, "HELLO");
}

/// A note of the runtime does not end the wait.
#[tokio::test(start_paused = true)]
async fn a_kept_root_waits_on_at_a_note_of_ours() {
    let tree = started(true).await;
    let first = waits(&tree).await;
    let note = Send::plain("lead".parse().unwrap(), Body::text("louder".to_owned()));
    tree.request(Actor::RUNTIME, note).await.unwrap();
    assert_eq!(waits(&tree).await.question, first.question);
}
