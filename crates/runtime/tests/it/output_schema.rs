//! Answers with a schema, in whole trees: checked when they arrive, repaired in ordinary turns, through a crash and a
//! replay, and returned as values.

use serde::Deserialize;
use spinney::StartError;
use spinney::tree::{OutputError, RequestError, verify};
use spinney_journal::Blocking;
use spinney_kernel::budget::Resource;
use spinney_kernel::context::{Frame, Message};
use spinney_kernel::definition::{Definition, MismatchKind, OutputSchema, Refusal};
use spinney_kernel::primitives::{Actor, RoleName, limit};
use spinney_kernel::record::{Event, Exit, ExitKind, Outcome};
use spinney_kernel::rules::request::{Request, Spawn};
use spinney_kernel::world::TreeState;
use spinney_testkit::{Scenario, TestHome, definition, recorded, settled};

const SCHEMA: &str = r#"{"type":"object","required":["rings"],"properties":{"rings":{"type":"integer"}}}"#;

/// A root whose answer may be longer than an event holds.
const LONG: &str = "root turns=1";

#[derive(Debug, Deserialize, PartialEq, Eq)]
struct Count {
    rings: u64,
}

/// A tree in which one role has a schema.
fn shaped(fixture: &str, role: &str, schema: &str) -> Definition {
    let mut definition = definition(fixture);
    let role: RoleName = role.parse().unwrap();
    let turns = definition.roles.get_mut(&role).and_then(|role| role.turns.as_mut()).unwrap();
    if fixture == LONG {
        turns.output_cap = Some(2 * limit::TEXT_BYTES_MAX as u64);
    }
    turns.output_schema = Some(Box::new(OutputSchema::read(schema).unwrap()));
    definition
}

/// Why each answer did not match.
fn mismatches(events: &[spinney::bus::RecordedEvent]) -> Vec<MismatchKind> {
    let kind = |event: &Event| {
        let Event::CallEnded { outcome: Outcome::Done { mismatch: Some(mismatch), .. }, .. } = event else {
            return None;
        };
        Some(mismatch.kind)
    };
    events.iter().filter_map(|recorded| kind(&recorded.event)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_repaired_answer_is_read_as_a_value_and_replays() {
    let stage = TestHome::new(
        "rules:\n  - { when: { turn: 1 }, say: Seventy rings. }\n  - { when: { last_contains: does not fit }, say: \"```json\\n{\\\"rings\\\": 70}\\n```\" }\n  - say: lost",
    );
    let tree = stage.home().start(shaped("root $9.00 turns=5", "root", SCHEMA)).await.unwrap();
    assert_eq!(tree.output::<Count>().await, Ok(Count { rings: 70 }));
    let end = tree.snapshot().await.unwrap().end.unwrap();
    assert_eq!((end.shown.text.as_str(), end.spent.get(Resource::Steps)), (r#"{"rings": 70}"#, 2));
    assert_eq!(mismatches(&recorded(&tree).await), [MismatchKind::NotJson]);
    assert!(verify(stage.journal().as_ref(), tree.id(), None).wait().unwrap().decided);
    // The model saw its answer and what was wrong with it, in this order.
    let packet = stage.model().attempts()[1].packet.messages.clone();
    let [_, said, wrong] = packet.as_slice() else { panic!("{packet:?}") };
    assert_eq!(said.text(), "Seventy rings.");
    assert!(matches!(wrong.as_ref(), Message::Mismatch(_)), "{wrong:?}");
}

/// A waiting parent reads a failure with code and place, and the child's text, marked; it continues from there.
#[tokio::test(start_paused = true)]
async fn a_parent_gets_a_typed_failure_for_a_child_that_answers_otherwise() {
    let stage = TestHome::new(
        "rules:\n  - { when: { agent: root, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: counter, id: c, goal: Count. } }] }\n  - { when: { agent: root }, say: \"{{ last }}\" }\n  - { when: { agent: counter }, say: '{\"rings\": \"many\"}' }",
    );
    let fixture = "root $9.00 turns=5 / counter turns=9 later";
    let tree = stage.home().start(shaped(fixture, "counter", SCHEMA)).await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    let end = tree.snapshot().await.unwrap().end.unwrap();
    insta::assert_snapshot!(end.shown.text, @r#"
    c failed (output_mismatch: at /rings: value is not of type "integer": the answer still does not fit `output_schema` after 2 repairs; describe the expected answer in the goal, or ask for less in the schema); partial result:
    {"rings": "many"}
    "#);
    let repairs = usize::from(limit::REPAIRS_MAX);
    assert_eq!(mismatches(&recorded(&tree).await), vec![MismatchKind::Value; repairs + 1]);
    assert!(verify(stage.journal().as_ref(), tree.id(), None).wait().unwrap().decided);
}

/// An answer that is too long for an event is checked whole, stored as a blob and read back whole.
#[tokio::test(start_paused = true)]
async fn a_long_answer_is_checked_whole_and_read_whole() {
    let long = "x".repeat(limit::TEXT_BYTES_MAX);
    let schema = r#"{"type":"object","required":["text","n"],"properties":{"n":{"const":7}}}"#;
    for (n, fits) in [(7, true), (8, false)] {
        let stage = TestHome::new(&format!("rules:\n  - say: '{{\"text\": \"{long}\", \"n\": {n}}}'"));
        let tree = stage.home().start(shaped(LONG, "root", schema)).await.unwrap();
        let output = tree.output::<serde_json::Value>().await;
        assert_eq!(output.is_ok_and(|value| value["text"] == long.as_str()), fits);
        assert!(verify(stage.journal().as_ref(), tree.id(), None).wait().unwrap().decided);
    }
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_tools_has_not_answered_yet() {
    let stage = TestHome::new(
        "rules:\n  - { when: { turn: 1 }, say: Let me see., call: [{ tool: look }] }\n  - say: '{\"rings\": 1}'\ntools: { look: { say: seen } }",
    );
    let tree = stage.home().start(shaped("root turns=5", "root", SCHEMA)).await.unwrap();
    assert_eq!(tree.output::<Count>().await, Ok(Count { rings: 1 }));
    assert_eq!(mismatches(&recorded(&tree).await), []);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_there_is_no_value_but_a_reason() {
    let stage = TestHome::new("rules:\n  - say: no idea");
    let home = stage.home();
    let tree = home.start(shaped("root turns=5", "root", SCHEMA)).await.unwrap();
    let error = tree.output::<Count>().await.unwrap_err();
    let OutputError::NoAnswer { exit: Exit::Failed { error: failure }, so_far } = &error else {
        panic!("{error}")
    };
    assert_eq!((failure.code.as_str(), so_far.text.as_str()), ("output_mismatch", "no idea"));
    // A root without a schema may answer anything.
    let tree = home.start(definition("root turns=5")).await.unwrap();
    assert!(matches!(tree.output::<Count>().await, Err(OutputError::OtherValue { .. })));
}

/// At the root's ceiling a repair halts the tree like any other turn, and it continues after a raise.
#[tokio::test(start_paused = true)]
async fn a_repair_that_does_not_fit_the_budget_halts_the_tree() {
    let stage = TestHome::new("rules:\n  - { when: { turn: 1 }, say: many }\n  - say: '{\"rings\": 2}'");
    let tree = stage.home().start(shaped("root steps=1 turns=5", "root", SCHEMA)).await.unwrap();
    assert_eq!(settled(&tree).await.state, TreeState::Halted);
    let add = spinney_kernel::budget::Amounts::ZERO.with(Resource::Steps, 1);
    let agent = "root".parse().unwrap();
    tree.raise(spinney_kernel::rules::request::Raise { agent, add, add_ms: 0 }).await.unwrap();
    assert_eq!(tree.output::<Count>().await, Ok(Count { rings: 2 }));
}

/// An invalid schema is refused when it is set; one that a model supplied fails its child with the reason.
#[tokio::test(start_paused = true)]
async fn an_invalid_schema_is_refused_or_reported() {
    let stage = TestHome::new(
        "rules:\n  - { when: { agent: root, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: b, id: c, goal: Go., output_schema: { type: integre } } }] }\n  - { when: { agent: root }, say: \"{{ last }}\" }\n  - say: 5",
    );
    let fixture = "root turns=5 / b turns=5 later";
    let home = stage.home();
    let refused = home.start(shaped(fixture, "b", r#"{"type":"integre"}"#)).await.err().unwrap();
    assert!(matches!(refused, StartError::Refused(Refusal::BadSchema { .. })), "{refused}");
    let tree = home.start(definition("root / b turns=5 later")).await.unwrap();
    let schema = OutputSchema::read(r#"{"$ref":"https://example.com/x"}"#).unwrap();
    let frame = Frame { output_schema: Some(Box::new(schema)), ..Frame::default() };
    let spawn = Request::Spawn(Spawn { frame, ..Scenario::spawn("root", "b") });
    let refused = tree.request(Actor::PERSON, spawn).await.unwrap_err();
    assert!(matches!(refused, RequestError::Refused(Refusal::BadSchema { .. })), "{refused}");
    let tree = home.start(definition(fixture)).await.unwrap();
    tree.ended().await;
    let end = tree.snapshot().await.unwrap().end.unwrap();
    insta::assert_snapshot!(end.shown.text, @r#"
    c failed (bad_output_schema: the schema itself is wrong: at /type: value is not one of "array", "boolean" or 5 other candidates, and value is not of type "array": no answer can fit it; give a valid one); partial result:
    5
    "#);
}

/// O9: a child with a declared schema answers in another shape. It fails as a mismatch, with code and place, and
/// nothing that depends on its answer starts: a follow-up is refused and spawns no agent, and a wait for a completed
/// child is not met by it. With an answer that matches, both continue.
#[tokio::test(start_paused = true)]
async fn o9_an_answer_of_another_shape_fails_and_what_builds_on_it_does_not_start() {
    let script = |answer: &str| {
        format!(
            "rules:\n  - {{ when: {{ agent: root, turn: 1 }}, call: [{{ tool: spawn_agent, args: {{ agent: counter, id: c, goal: Count., detach: true }} }}, {{ tool: wait_agent, args: {{ agents: [c], need: {{ first: 1 }} }} }}] }}\n  - {{ when: {{ agent: root, turn: 2 }}, call: [{{ tool: followup_task, args: {{ agent: c, task: Name the oldest. }} }}] }}\n  - {{ when: {{ agent: root }}, say: \"{{{{ last }}}}\" }}\n  - {{ when: {{ agent: counter }}, say: '{answer}' }}"
        )
    };
    for (answer, fits) in [(r#"{"rings": "many"}"#, false), (r#"{"rings": 70}"#, true)] {
        let stage = TestHome::new(&script(answer));
        let fixture = "root $9.00 turns=5 / counter later turns=9";
        let tree = stage.home().start(shaped(fixture, "counter", SCHEMA)).await.unwrap();
        assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
        let events = recorded(&tree).await;
        let exits = events.iter().filter_map(|recorded| {
            let Event::AgentEnded { agent, exit, .. } = &recorded.event else { return None };
            (agent.as_str() == "c").then(|| exit.clone())
        });
        let spawned =
            events.iter().filter(|recorded| matches!(recorded.event, Event::AgentSpawned(_))).count();
        let results: Vec<(String, bool)> = stage
            .model()
            .attempts()
            .iter()
            .rfind(|attempt| attempt.origin.agent().as_str() == "root")
            .into_iter()
            .flat_map(|attempt| attempt.packet.messages.iter())
            .filter_map(|message| {
                let Message::Result { text, is_error, .. } = message.as_ref() else { return None };
                Some((text.clone(), *is_error))
            })
            .collect();
        match exits.collect::<Vec<_>>().as_slice() {
            [Exit::Completed] if fits => {
                assert_eq!((spawned, results[2].1), (3, false), "{results:?}");
            }
            [Exit::Failed { error }] if !fits => {
                assert_eq!((error.code.as_str(), spawned), ("output_mismatch", 2), "{error:?}");
                assert!(error.message.contains("/rings"), "{}", error.message);
                assert!(
                    results[1].1 && results[1].0.contains("fewer completed than you asked for"),
                    "{results:?}"
                );
                assert!(
                    results[2].1 && results[2].0.contains("is failed, and its context is gone"),
                    "{results:?}"
                );
            }
            other => panic!("{answer}: {other:?}"),
        }
    }
}
