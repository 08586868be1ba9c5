//! Steps that are given values which agents write with `write_context`: they wait until those are written, or end.

use serde_json::json;
use spinney::tree::verify;
use spinney::tree_file::TreeFile;
use spinney::{Shutdown, Tree};
use spinney_kernel::definition::Definition;
use spinney_kernel::primitives::Actor;
use spinney_kernel::record::{Event, Exit, ExitKind};
use spinney_kernel::rules::request::WriteValue;
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, settled};

use crate::graph_file_errors::errors_of;
use crate::graphs::{Played, play_tree};

const TREE: &str = r"
name: test
goal: Do it.
models:
  m: { provider: scripted, script: s.yaml }
agents:
  noter: { model: m, tools: [write_context] }
  worker: { model: m }
  lead: { model: m, tools: [write_context, run_pipeline] }
shared:
  plan: { write: [noter, lead] }
  other: {}
";

fn definition(rest: &str) -> Definition {
    TreeFile::parse("tree.yaml", &format!("{TREE}{rest}"))
        .unwrap_or_else(|error| panic!("{error}"))
        .definition
}

/// A noter writes the plan after a second. Other agents answer at once.
const WRITES: &str = r#"
rules:
  - when: { agent: noter, turn: 1 }
    think_ms: 1000
    call: [ { tool: write_context, args: { key: plan, value: { steps: ["</input>", 2] } } } ]
  - { say: "{{ agent }} is done" }
"#;

/// Agents that write nothing.
const WRITES_NOTHING: &str =
    "rules:\n  - { when: { agent: noter }, think_ms: 1000, say: nothing to note }\n  - { say: done }\n";

fn written(played: &Played) -> usize {
    played.place(|event| matches!(event, Event::ValueWritten { name, .. } if name.as_str() == "plan"))
}

/// O5 (shared values): a step begins, waits for a value that another agent writes while it works, and its agent reads it.
#[tokio::test(start_paused = true)]
async fn o5_a_step_waits_for_a_shared_value_and_is_given_it() {
    let pipeline = r"
pipeline:
  mode: parallel
  steps:
    - { id: reader, agent_id: worker, task_description: Read it., input_from: [shared.plan, 'shared.other?'] }
    - { id: note, agent_id: noter, task_description: Note it. }
";
    let played = play_tree(WRITES, definition(pipeline)).await;
    assert_eq!(played.exit().0, Exit::Completed);
    let began = played.place(|event| matches!(event, Event::NodeStarted(start) if start.name == "reader"));
    assert!(began < written(&played) && written(&played) < played.spawned("reader"));
    assert!(played.spawned("reader") < played.ended("note"), "it does not wait for the end of the writer");
    let packet = played.packet("reader");
    assert!(packet.contains(r#"<input name="shared.plan">{"steps":["<\/input>",2]}</input>"#), "{packet}");
    assert!(packet.contains(r#"<input name="shared.other" missing="true"/>"#), "{packet}");
}

/// A value that is there when the step begins makes no wait.
#[tokio::test(start_paused = true)]
async fn a_step_after_the_writer_begins_at_once() {
    let pipeline = r"
pipeline:
  steps:
    - { id: note, agent_id: noter, task_description: Note it. }
    - { id: reader, agent_id: worker, task_description: Read it., input_from: shared.plan, on_missing: fail }
";
    let played = play_tree(WRITES, definition(pipeline)).await;
    assert_eq!(played.exit().0, Exit::Completed);
    let waits = |event: &Event| matches!(event, Event::NodeStarted(start) if !start.waits_for.is_empty());
    assert!(!played.events.iter().any(waits));
    assert!(played.packet("reader").contains("<input name=\"shared.plan\">"));
}

/// O5 (shared values): with `on_missing: fail` a missing value fails the step before its agent is called, by the policy of the
/// graph.
#[tokio::test(start_paused = true)]
async fn o5_a_step_can_fail_at_once_without_its_shared_value() {
    for (policy, code, ends) in [
        ("fail", "missing_input", vec!["reader failed", "pipeline failed"]),
        ("continue", "completed", vec!["reader skipped", "note succeeded", "pipeline succeeded"]),
    ] {
        let pipeline = format!(
            r"
pipeline:
  on_partial_success: {policy}
  steps:
    - {{ id: reader, agent_id: worker, task_description: Read it., input_from: shared.plan, on_missing: fail }}
    - {{ id: note, agent_id: noter, task_description: Note it. }}
"
        );
        let played = play_tree(WRITES, definition(&pipeline)).await;
        assert_eq!(
            (played.code().as_str(), played.ends()),
            (code, ends.iter().map(ToString::to_string).collect())
        );
    }
}

/// A wait ends when every agent that could write the value has ended, by the policy of the graph; it holds up nobody until then.
#[tokio::test(start_paused = true)]
async fn a_step_ends_when_no_agent_is_left_that_could_write_its_value() {
    let pipeline = |policy: &str| {
        format!(
            r"
pipeline:
  on_partial_success: {policy}
  steps:
    - parallel:
        - {{ id: reader, agent_id: worker, task_description: Read it., input_from: shared.plan, retry: 2 }}
        - {{ id: note, agent_id: noter, task_description: Note it. }}
    - {{ id: last, agent_id: worker, task_description: Finish. }}
"
        )
    };
    let played = play_tree(WRITES_NOTHING, definition(&pipeline("fail"))).await;
    assert_eq!(played.ends(), ["note succeeded", "reader failed", "parallel failed", "pipeline failed"]);
    let (exit, _) = played.exit();
    let why = "step `reader`: its input `shared.plan` is not written, and no agent is left that could write it: let an agent write it with `write_context`, or write `shared.plan?` to go without it";
    assert!(exit.to_string().contains(why), "{exit}");
    assert!((1_000..2_000).contains(&played.took_ms), "{}", played.took_ms);
    let played = play_tree(WRITES_NOTHING, definition(&pipeline("best_effort"))).await;
    let ends =
        ["note succeeded", "reader skipped", "parallel succeeded", "last succeeded", "pipeline succeeded"];
    assert_eq!(played.ends(), ends);
}

/// Two steps wait for values that nobody writes: the wait of one ends first, because what follows could write the other's.
#[tokio::test(start_paused = true)]
async fn one_wait_ends_at_a_time() {
    let pipeline = r"
pipeline:
  mode: parallel
  steps:
    - sequence:
        - { id: first, agent_id: worker, task_description: Read it., input_from: shared.other, required: false }
        - { id: note, agent_id: noter, task_description: Note it. }
    - { id: second, agent_id: worker, task_description: Read it., input_from: shared.plan }
";
    let played = play_tree(WRITES, definition(pipeline)).await;
    assert_eq!(played.exit().0, Exit::Completed);
    assert_eq!(played.ends()[0], "first failed");
    assert!(written(&played) < played.spawned("second"));
}

/// Steps that wait are cancelled with their group: the others of a race that is won, and those of a group whose time is up.
#[tokio::test(start_paused = true)]
async fn a_step_that_waits_is_cancelled_with_its_group() {
    let pipeline = r"
pipeline:
  steps:
    - race:
        - { id: reader, agent_id: worker, task_description: Read it., input_from: shared.plan }
        - { id: quick, agent_id: worker, task_description: Win. }
    - id: bounded
      timeout: 1s
      required: false
      parallel:
        - { sequence: [ { id: late, agent_id: worker, task_description: Read it., input_from: shared.plan } ] }
        - { id: asks, ask: 'Well?' }
    - { id: last, agent_id: worker, task_description: Finish. }
";
    let played = play_tree(WRITES_NOTHING, definition(pipeline)).await;
    let ends = played.ends();
    assert_eq!(played.code(), "completed", "{ends:?}");
    for end in ["reader cancelled", "late cancelled", "bounded failed", "last succeeded"] {
        assert!(ends.contains(&end.to_owned()), "{end}: {ends:?}");
    }
    let place = |end: &str| ends.iter().position(|other| other == end).unwrap();
    assert!(place("late cancelled") < place("bounded failed"), "{ends:?}");
    assert!(!played.agents().contains(&"reader".to_owned()));
}

/// Starts a tree with a step that waits, and kills the process then.
async fn killed(stage: &TestHome, pipeline: &str) -> Tree {
    let home = stage.home();
    let tree = home.start(definition(pipeline)).await.unwrap();
    assert_eq!(settled(&tree).await.state, TreeState::Waiting);
    home.shutdown(Shutdown::Kill).await;
    tree
}

/// A wait survives the process. A person can write the value as well.
#[tokio::test(start_paused = true)]
async fn a_step_that_waits_survives_a_kill() {
    let pipeline = r"
pipeline:
  mode: parallel
  steps:
    - { id: well, ask: 'Well?' }
    - { id: reader, agent_id: worker, task_description: Read it., input_from: shared.plan }
";
    let stage = TestHome::new(WRITES);
    let tree = killed(&stage, pipeline).await;
    let home = stage.home();
    let tree = home.resume(tree.id()).await.unwrap();
    assert_eq!(settled(&tree).await.state, TreeState::Waiting);
    let value = json!({ "by": "a person" }).to_string();
    let write = WriteValue { name: "plan".parse().unwrap(), json: value, expect_version: None, tokens: None };
    tree.request(Actor::PERSON, write).await.unwrap();
    settled(&tree).await;
    let question = tree.snapshot().await.unwrap().questions[0].question;
    tree.answer(question, "fine").await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    verify(stage.journal().as_ref(), tree.id(), None).await.unwrap();
    let played = Played::from_tree(&tree, stage).await;
    assert!(played.packet("reader").contains(r#"<input name="shared.plan">{"by":"a person"}</input>"#));
}

/// A graph of an agent is given what that agent wrote before; a value that nobody declared or wrote is refused.
#[tokio::test(start_paused = true)]
async fn a_graph_that_an_agent_asks_for_is_given_shared_values() {
    let script = r#"
rules:
  - when: { agent: lead, turn: 1 }
    call: [ { tool: write_context, args: { key: "loose", value: 7 } } ]
  - when: { agent: lead, turn: 2 }
    call: [ { tool: run_pipeline, args: { steps: [ { id: reader, agent_id: worker, task_description: Read it., input_from: [shared.missing] } ] } } ]
  - when: { agent: lead, turn: 3 }
    call: [ { tool: run_pipeline, args: { steps: [ { id: reader, agent_id: worker, task_description: Read it., input_from: [shared.loose, shared.plan] } ] } } ]
  - when: { agent: lead, turn: 4 }
    say: "{{ last }}"
  - { say: done }
"#;
    let played = play_tree(script, definition("entry: lead\n")).await;
    let attempts = played.stage.model().attempts();
    let last = |turn: u32| {
        let attempt =
            attempts.iter().find(|attempt| attempt.turn == turn && attempt.origin.agent().as_str() == "lead");
        attempt.unwrap().packet.messages.last().unwrap().text().into_owned()
    };
    insta::assert_snapshot!(last(3), @"the graph was not started: steps[0].input_from: unknown shared value `missing`: write it with `write_context` before");
    // Its own agent waits for the graph, so no agent is left that could write the plan.
    let told = last(4);
    assert!(
        told.contains(r#""failed":["reader"]"#) && told.contains("no agent is left that could write it"),
        "{told}"
    );
}

#[test]
fn a_shared_input_that_nothing_declares_is_an_error_of_the_file() {
    let pipeline = "
pipeline:
  steps:
    - { agent_id: worker, task_description: Read it., input_from: [shared.plam, shared.unheard, shared.plan] }
";
    let errors = errors_of(&format!("{TREE}{pipeline}"));
    insta::assert_snapshot!(errors, @"
    tree.yaml:16:67: unknown shared value `plam`: did you mean `shared.plan`?
    tree.yaml:16:67: unknown shared value `unheard`: declare it: `shared: { NAME: {} }` lets every agent read and write it
    ");
}
