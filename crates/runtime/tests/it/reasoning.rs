//! Reasoning of models: it is sent back to the same agent on the same model, byte for byte, and to no other.

use std::sync::{Arc, Mutex};

use spinney::bus::{Watch, WatchItem};
use spinney::{Drivers, FunctionModel, Home, Shutdown};
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::definition::ToolSpec;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, DeltaKind, ModelAnswer, ModelAttempt};
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::{Fault, FaultKind, ModelName};
use spinney_kernel::record::ToolAsk;
use spinney_testkit::{TestHome, definition, settled};
use tokio::sync::Notify;

/// A provider's continuation data: not text, and with every byte value.
fn signature() -> Vec<u8> {
    (0..=255).cycle().take(3_000).collect()
}

/// What was sent back in each call: agent, model, bytes.
type Given = Arc<Mutex<Vec<(String, String, Option<Vec<u8>>)>>>;

/// A model that reasons before each answer, and records what is sent back to it for its first one.
fn thinking(given: &Given, answer: fn(&ModelAttempt) -> Result<ModelAnswer, AttemptError>) -> FunctionModel {
    let given = Arc::clone(given);
    FunctionModel::new(move |attempt| {
        let given = Arc::clone(&given);
        async move {
            let thought = attempt.packet.messages.iter().find_map(|message| attempt.continuation(message));
            let back = match thought {
                Some(bytes) => Some(bytes.await?),
                None => None,
            };
            let agent = attempt.origin.agent().to_string();
            given.lock().unwrap().push((agent, attempt.model.to_string(), back));
            let used = Used::Tokens(Usage { input: 10, output: 40, reasoning: 30, ..Usage::default() });
            let thought = (Some(signature()), "Let me think.".to_owned());
            answer(&attempt)
                .map(|answer| answer.with_used(used).with_continuation(thought.0).with_reasoning(thought.1))
        }
    })
}

fn with_model(drivers: Drivers, name: &str, model: FunctionModel) -> Drivers {
    drivers.with_model(name.parse::<ModelName>().unwrap(), Arc::new(model))
}

fn asks(tool: &str, args: &str) -> Result<ModelAnswer, AttemptError> {
    Ok(ModelAnswer::text("Wait.").with_asks(vec![ToolAsk::new("1", tool, args)]))
}

fn look_then_answer(attempt: &ModelAttempt) -> Result<ModelAnswer, AttemptError> {
    if attempt.turn == 1 { asks("look", "{}") } else { Ok(ModelAnswer::text("done")) }
}

const LOOKS: &str = "rules: [{ say: x }]\ntools: { look: { say: seen } }";

fn home(stage: &TestHome, given: &Given) -> Home {
    stage.home_with(|drivers| with_model(drivers, "m", thinking(given, look_then_answer)))
}

/// A tool that reports its call, and never ends.
struct Hangs {
    started: Arc<Notify>,
}

impl Tool for Hangs {
    fn spec(&self) -> ToolSpec {
        ToolSpec::default()
    }

    fn call(&self, _: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>> {
        self.started.notify_one();
        Box::pin(std::future::pending())
    }
}

/// G7: also after a crash between the two turns, when the context is read from the journal.
#[tokio::test]
async fn g7_what_a_model_thought_goes_back_unchanged_also_after_a_crash() {
    for crashes in [false, true] {
        let (stage, given) = (TestHome::new(LOOKS), Given::default());
        let started = Arc::new(Notify::new());
        let hangs = Hangs { started: Arc::clone(&started) };
        let first = stage.home_with(|drivers| {
            let drivers = with_model(drivers, "m", thinking(&given, look_then_answer));
            if crashes { drivers.with_tool("look".parse().unwrap(), Arc::new(hangs)) } else { drivers }
        });
        let mut tree = first.start(definition("root $9.00 turns=5 tools=look")).await.unwrap();
        if crashes {
            started.notified().await;
            first.shutdown(Shutdown::Kill).await;
            tree = home(&stage, &given).resume(tree.id()).await.unwrap();
        }
        settled(&tree).await;
        let given = given.lock().unwrap();
        let (_, _, back) = given.last().unwrap();
        assert_eq!(back.as_deref(), Some(signature().as_slice()), "crashes: {crashes}");
        assert_eq!(given[0].2, None, "nothing was thought before the first turn");
    }
}

/// G7: a fallback gets the answer, and no reasoning of the first model.
#[tokio::test]
async fn g7_another_model_gets_nothing_of_it() {
    fn fails_later(attempt: &ModelAttempt) -> Result<ModelAnswer, AttemptError> {
        match attempt.turn {
            1 => asks("look", "{}"),
            _ => Err(AttemptError { fault: Fault::new(FaultKind::Auth), used: Used::NOTHING }),
        }
    }
    let (stage, given) = (TestHome::new(LOOKS), Given::default());
    let home = stage.home_with(|drivers| {
        let drivers = with_model(drivers, "m", thinking(&given, fails_later));
        with_model(drivers, "cheap", thinking(&given, |_| Ok(ModelAnswer::text("done"))))
    });
    let tree = home.start(definition("root $9.00 turns=5 tools=look")).await.unwrap();
    settled(&tree).await;
    let back: Vec<(String, bool)> =
        given.lock().unwrap().iter().map(|(_, model, back)| (model.clone(), back.is_some())).collect();
    let expected = [("m", false), ("m", true), ("cheap", false)];
    assert_eq!(back, expected.map(|(model, is_back)| (model.to_owned(), is_back)));
}

/// G7: a child with a copy of its parent's turns has their texts, but not their reasoning.
#[tokio::test]
async fn g7_a_forked_child_gets_nothing_of_it() {
    fn forks(attempt: &ModelAttempt) -> Result<ModelAnswer, AttemptError> {
        match (attempt.origin.depth(), attempt.turn) {
            (0, 1) => asks("look", "{}"),
            (0, 2) => asks("spawn_agent", r#"{"agent":"child","goal":"Help.","share":{"fork":5}}"#),
            _ => Ok(ModelAnswer::text("done")),
        }
    }
    let (stage, given) = (TestHome::new(LOOKS), Given::default());
    let home = stage.home_with(|drivers| with_model(drivers, "m", thinking(&given, forks)));
    let tree = home
        .start(definition("root $9.00 turns=5 tools=look,spawn_agent / child later turns=2"))
        .await
        .unwrap();
    settled(&tree).await;
    let given = given.lock().unwrap();
    let of_child: Vec<_> = given.iter().filter(|(agent, ..)| agent != "root").collect();
    assert_eq!(of_child.len(), 1);
    assert_eq!(of_child[0].2, None);
    assert!(given.iter().any(|(agent, _, back)| agent == "root" && back.is_some()));
}

/// What a model thinks is streamed before its answer, as its own kind with offsets of its own.
#[tokio::test(start_paused = true)]
async fn thoughts_are_streamed_apart_from_the_answer() {
    let stage = TestHome::new(
        "rules: [{ think_ms: 10, think: 'First I look around, then I answer.', say: 'Here is my long answer.' }]",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=2").await;
    let mut watcher = tree.watch(Watch { deltas: true, ..Watch::default() });
    let (mut thought, mut said) = (String::new(), String::new());
    while let Some(seen) = watcher.next().await {
        let WatchItem::Delta(delta) = seen.unwrap() else { continue };
        let text = match delta.kind {
            DeltaKind::Reasoning => {
                assert_eq!(said, "", "thoughts come first");
                &mut thought
            }
            DeltaKind::Text => &mut said,
            DeltaKind::Output => panic!("no tool runs"),
        };
        assert_eq!(delta.offset, text.len());
        text.push_str(&delta.text);
    }
    assert_eq!(
        (thought.as_str(), said.as_str()),
        ("First I look around, then I answer.", "Here is my long answer.")
    );
}
