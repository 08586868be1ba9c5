//! A root that is kept: after each answer it waits for a person, and a person ends it.

use std::sync::Arc;
use std::time::Duration;

use spinney::bus::RecordedEvent;
use spinney::request::{Conclude, Send};
use spinney::tree::{OpenQuestion, RequestError};
use spinney::{Drivers, Home, Tree, TreeFile};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, Body};
use spinney_kernel::record::{Event, Exit};
use spinney_kernel::world::TreeState;
use spinney_store::MemoryJournal;
use spinney_testkit::scripted::Script;
use spinney_testkit::{recorded, settled};

const SCRIPT: &str = "
rules:
- { when: { last_contains: louder }, say: HELLO }
- { when: { last_contains: again }, say: hello again }
- { say: hello }
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

fn end(events: &[RecordedEvent]) -> (Exit, String) {
    let ended = events.iter().find_map(|recorded| match &recorded.event {
        Event::AgentEnded { exit, result, .. } => {
            Some((exit.clone(), result.as_ref().map(|body| body.text.clone()).unwrap_or_default()))
        }
        _ => None,
    });
    ended.unwrap()
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
    assert_eq!(end(&events), (Exit::Completed, "HELLO".to_owned()));
    let heard = events.iter().filter(|recorded| matches!(recorded.event, Event::MessageSent { .. })).count();
    assert_eq!((heard, third.path.len()), (2, 1));
}

/// Nobody wrote for a month: it ends with its answer.
#[tokio::test(start_paused = true)]
async fn a_kept_root_that_nobody_writes_to_ends_with_its_answer() {
    let tree = started(true).await;
    waits(&tree).await;
    tokio::time::sleep(Duration::from_secs(31 * 24 * 3_600)).await;
    tree.ended().await;
    assert_eq!(end(&recorded(&tree).await), (Exit::Completed, "hello".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn only_an_agent_that_waits_after_an_answer_is_concluded() {
    let tree = started(false).await;
    let refused = tree.request(Actor::PERSON, Conclude { agent: "lead".parse().unwrap() }).await;
    let expected = Refusal::NothingToConclude { agent: "lead".parse().unwrap() };
    assert!(matches!(&refused, Err(RequestError::Refused(why)) if *why == expected), "{refused:?}");
    tree.ended().await;
}
