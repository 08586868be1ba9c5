//! A conversation is handed over to another agent, which talks to the person until it hands back.

use std::sync::Arc;

use spinney::request::{Conclude, Send};
use spinney::tree::{OpenQuestion, RequestError, verify};
use spinney::{Drivers, Home, Shutdown, Tree, TreeFile};
use spinney_journal::{Blocking, Journal};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, AgentId, Body};
use spinney_kernel::record::{Event, Exit};
use spinney_store::MemoryJournal;
use spinney_testkit::scripted::{Script, ScriptedModel};
use spinney_testkit::{Recorder, recorded, settled};

const FILE: &str = "
name: desk
goal: I want to travel.
budget: { cost_usd: 1, timeout: 5s }
models: { m: { provider: scripted, script: none, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } } }
agents:
  desk: { model: m, tools: [delegate_to_agent] }
  trains: { model: m, tools: [hand_back, delegate_to_agent] }
entry: desk
";

const SCRIPT: &str = "
rules:
- { when: { agent: desk, turn: 1 }, say: Trains are another desk., call: [{ tool: delegate_to_agent, args: { agent: trains, task: Find a train., id: trains } }] }
- { when: { agent: desk }, say: 'booked: {{ last }}' }
- { when: { agent: trains, last_contains: round }, call: [{ tool: delegate_to_agent, args: { agent: desk, task: Go round. } }] }
- { when: { agent: trains, last_contains: noon }, call: [{ tool: hand_back, args: { message: the train at noon } }] }
- { say: At which time? }
";

struct Stage {
    home: Home,
    tree: Tree,
    journal: Arc<dyn Journal>,
    model: Arc<Recorder<ScriptedModel>>,
}

fn home(journal: &Arc<dyn Journal>, model: &Arc<Recorder<ScriptedModel>>) -> Home {
    let drivers = Drivers::new().with_model("m".parse().unwrap(), Arc::clone(model) as _);
    Home::open(Arc::clone(journal), drivers)
}

async fn started() -> Stage {
    let definition = TreeFile::parse("tree.yaml", FILE).unwrap().definition;
    let model = Arc::new(Recorder::new(Script::parse("s.yaml", SCRIPT).unwrap().model()));
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let home = home(&journal, &model);
    let tree = home.start(definition).await.unwrap();
    Stage { home, tree, journal, model }
}

fn trains() -> AgentId {
    "trains".parse().unwrap()
}

async fn waits(tree: &Tree) -> OpenQuestion {
    loop {
        let found = settled(tree).await.questions.into_iter().find(|question| question.is_after_answer);
        if let Some(question) = found {
            return question;
        }
    }
}

async fn result(stage: &Stage) -> (Exit, String) {
    stage.tree.ended().await;
    let end = stage.tree.snapshot().await.unwrap().end.unwrap();
    assert!(verify(stage.journal.as_ref(), stage.tree.id(), None).wait().unwrap().decided);
    (end.exit, end.shown.text)
}

/// The agent knows what was said, talks to the person over several turns and a kill, and hands back. The agent
/// above need not have the tool for that.
#[tokio::test(start_paused = true)]
async fn a_conversation_is_handed_over_and_back() {
    let mut stage = started().await;
    let question = waits(&stage.tree).await;
    assert_eq!(question.path.last(), Some(&trains()));
    let packet = format!("{:?}", stage.model.attempts().last().unwrap().packet);
    assert!(packet.contains("Find a train."), "{packet}");
    stage.tree.answer(question.question, "which are there?".to_owned()).await.unwrap();
    waits(&stage.tree).await;
    stage.home.shutdown(Shutdown::Kill).await;
    stage.home = home(&stage.journal, &stage.model);
    stage.tree = stage.home.resume(stage.tree.id()).await.unwrap();
    waits(&stage.tree).await;
    let send = Send::plain(trains(), Body::text("at noon".to_owned()));
    stage.tree.request(Actor::PERSON, send).await.unwrap();
    let (exit, answer) = result(&stage).await;
    assert_eq!(exit, Exit::Completed);
    assert!(answer.contains("booked") && answer.contains("the train at noon"), "{answer}");
    let spawned = recorded(&stage.tree).await.into_iter().any(|recorded| {
        matches!(recorded.event, Event::AgentSpawned(spawned) if spawned.talks && spawned.agent == trains())
    });
    assert!(spawned);
}

/// A person can end it as well, and a cancel stops it with everything above.
#[tokio::test(start_paused = true)]
async fn a_person_ends_what_was_handed_over() {
    let stage = started().await;
    waits(&stage.tree).await;
    stage.tree.request(Actor::PERSON, Conclude { agent: trains() }).await.unwrap();
    let (_, answer) = result(&stage).await;
    assert!(answer.contains("At which time?"), "{answer}");
    let stage = started().await;
    waits(&stage.tree).await;
    stage.tree.cancel("desk".parse().unwrap(), "enough").await.unwrap();
    let (exit, _) = result(&stage).await;
    assert!(matches!(exit, Exit::Cancelled { .. }), "{exit:?}");
}

/// O23: a role that is above is not delegated to again, and only who was handed a conversation hands it back.
#[tokio::test(start_paused = true)]
async fn o23_a_conversation_does_not_go_in_circles() {
    let stage = started().await;
    let question = waits(&stage.tree).await;
    stage.tree.answer(question.question, "round".to_owned()).await.unwrap();
    // It asks for the same again and again, which ends it.
    stage.tree.ended().await;
    let answers: Vec<String> = recorded(&stage.tree)
        .await
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::ToolAnswered { body, is_error: true, .. } => Some(body.text),
            _ => None,
        })
        .collect();
    assert!(answers.iter().any(|text| text.contains("desk > trains")), "{answers:?}");
    let other = Script::parse(
        "s.yaml",
        "rules: [{ when: { turn: 1 }, call: [{ tool: hand_back, args: { message: here } }] }, { say: done }]",
    );
    let model = Arc::new(Recorder::new(other.unwrap().model()));
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let file = FILE.replace("desk: { model: m, tools: [", "desk: { model: m, tools: [hand_back, ");
    let definition = TreeFile::parse("tree.yaml", &file).unwrap().definition;
    let tree = home(&journal, &model).start(definition).await.unwrap();
    tree.ended().await;
    let refused = Refusal::NothingToHandBack.to_string();
    let is_refused =
        |event: &Event| matches!(event, Event::ToolAnswered { body, .. } if body.text == refused);
    assert!(recorded(&tree).await.iter().any(|recorded| is_refused(&recorded.event)));
    let unknown = tree.request(Actor::PERSON, Conclude { agent: trains() }).await;
    assert!(matches!(unknown, Err(RequestError::Refused(_) | RequestError::Stopped(_))), "{unknown:?}");
}
