//! Scenarios of graphs on the real runtime: a race, an output of the wrong type, and seven of ten that succeed.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use spinney::tree_file::TreeFile;
use spinney_kernel::primitives::AgentId;
use spinney_kernel::record::{Event, Exit, NodeEnd, Outcome, Skip};

use crate::graphs::{Played, play, play_tree};

const SOME_ARE_SLOW: &str = r#"
rules:
  - { when: { agent: lead, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: worker, id: below, goal: Be slow. } }] }
  - { when: { goal_contains: Fail }, think_ms: 5, fail: { kind: auth, times: 9 }, say: x }
  - { when: { goal_contains: quick }, think_ms: 100, say: quick }
  - { when: { goal_contains: slow }, think_ms: 90000, say: slow }
  - { say: "{{ agent }} is done" }
"#;

/// S17: the first success wins, however many failed before it. Everything else of the race is cancelled, has ended
/// before the race ends, and holds no budget: an agent with a child, a group with its own budget, and a question.
#[tokio::test(start_paused = true)]
async fn s17_the_first_success_wins_and_a_race_leaves_no_survivor() {
    let text = r"
name: test
goal: Do it.
budget: { cost_usd: 9 }
models:
  m: { provider: scripted, script: s.yaml, price: { input_per_mtok_usd: 0, output_per_mtok_usd: 1 } }
agents:
  worker: { model: m }
  lead: { model: m, tools: [spawn_agent] }
pipeline:
  steps:
    - race:
        - { id: broken, agent_id: worker, task_description: Fail. }
        - { id: parent, agent_id: lead, task_description: Delegate. }
        - id: group
          budget: { cost_usd: 1 }
          sequence:
            - { id: slow, agent_id: worker, task_description: Be slow. }
            - { id: never, agent_id: worker, task_description: Be quick. }
        - { id: person, ask: May it win? }
        - { id: winner, agent_id: worker, task_description: Be quick. }
      output_to: won
    - { id: after, agent_id: worker, task_description: Go on., input_from: [won] }
";
    let file = TreeFile::parse("tree.yaml", text).unwrap_or_else(|error| panic!("{error}"));
    let played = play_tree(SOME_ARE_SLOW, file.definition).await;
    assert_eq!(played.exit().0, Exit::Completed);
    assert_eq!(played.value("won"), json!("quick"));
    assert!(played.packet("after").contains(r#"<input name="won">"quick"</input>"#));
    let ends = played.ends();
    assert_eq!(ends[..2], ["broken failed", "winner succeeded"]);
    assert_eq!(ends[ends.len() - 3..], ["race succeeded", "after succeeded", "pipeline succeeded"]);
    let cancelled: BTreeSet<&str> = ends.iter().filter_map(|end| end.strip_suffix(" cancelled")).collect();
    assert_eq!(cancelled, BTreeSet::from(["group", "parent", "person", "slow"]));
    assert!(!played.agents().contains(&"never".to_owned()));
    let over = played.place(|event| matches!(event, Event::NodeEnded { name, .. } if name == "race"));
    for loser in ["broken", "parent", "below", "group", "slow"] {
        assert!(played.ended(loser) < over, "{loser} survived the race");
    }
    let is_closed = |event: &Event| matches!(event, Event::CallEnded { outcome: Outcome::Cancelled, .. });
    assert!(played.place(is_closed) < over, "nobody is asked any more");
    assert!(played.took_ms < 1_000, "nobody waited for the losers: {} ms", played.took_ms);
}

/// S22: an answer of another type is not an output. The step fails, nothing reads its answer, and a retry that answers as
/// asked gives the value its type.
#[tokio::test(start_paused = true)]
async fn s22_an_output_of_the_wrong_type_is_never_read() {
    let pipeline = |policy: &str, retry: u32| {
        format!(
            r"
pipeline:
  on_partial_success: {policy}
  steps:
    - {{ id: count, agent_id: worker, task_description: Count., output_schema: {{ type: integer }}, output_to: n, retry: {retry} }}
    - {{ id: needs, agent_id: writer, task_description: 'Write {{{{ n }}}}.', input_from: [n] }}
    - {{ id: can, agent_id: writer, task_description: Write., input_from: [n?] }}
"
        )
    };
    // A text, a text that says a number, and a number that is not an integer.
    for wrong in ["five", "\"5\"", "5.5"] {
        let script =
            format!("rules:\n  - {{ when: {{ agent: worker }}, say: '{wrong}' }}\n  - {{ say: fine }}\n");
        let played = play(&script, &pipeline("fail", 1)).await;
        assert_eq!(played.ends(), ["count failed", "count failed", "pipeline failed"], "{wrong}");
        assert_eq!(played.code(), "output_mismatch");
        assert_eq!(played.agents(), ["pipeline", "count", "count-t2"], "{wrong}");
        assert_eq!(played.value("n"), Value::Null, "{wrong} was never written");
        let played = play(&script, &pipeline("continue", 0)).await;
        assert_eq!(
            played.ends(),
            ["count failed", "needs skipped", "can succeeded", "pipeline failed"],
            "{wrong}"
        );
        let why = Skip::Missing("n".to_owned());
        let skipped = |event: &Event| matches!(event, Event::NodeEnded { end: NodeEnd::Skipped { why: is }, .. } if *is == why);
        assert!(played.events.iter().any(skipped));
        let packet = played.packet("can");
        assert!(
            packet.contains(r#"<input name="n" missing="true"/>"#) && !packet.contains(wrong),
            "{packet}"
        );
    }
    // The agent answers as asked when it is told what was wrong.
    let script = "rules:\n  - { when: { agent: worker, turn: 1 }, say: five }\n  - { when: { agent: worker }, say: '5' }\n  - { say: fine }\n";
    let played = play(script, &pipeline("fail", 0)).await;
    assert_eq!(played.exit().0, Exit::Completed);
    assert_eq!(played.value("n"), json!(5));
    let packet = played.packet("needs");
    assert!(packet.contains(r#"<input name="n">5</input>"#) && packet.contains("Write 5."), "{packet}");
}

/// Ten steps at the same time of which three fail, two of them last, and a step that reads all.
fn ten(policy: &str) -> String {
    let steps: String = (0..10)
        .map(|at| {
            let word = if [3, 6, 9].contains(&at) { "Fail" } else { "Do" };
            format!("        - {{ id: s{at}, agent_id: worker, task_description: {word} {at}., output_to: o{at} }}\n")
        })
        .collect();
    let all: Vec<String> = (0..10).map(|at| format!("o{at}?")).collect();
    format!(
        "pipeline:\n  on_partial_success: {policy}\n  steps:\n    - parallel:\n{steps}    \
         - {{ id: reduce, agent_id: writer, task_description: Join., input_from: [{}] }}\n",
        all.join(", ")
    )
}

/// Steps succeed one after the other, and those that fail do so after them; the last two of these never end.
const SEVEN: &str = r"
rules:
  - { when: { goal_contains: Fail 3 }, think_ms: 5000, fail: { kind: auth, times: 9 }, say: x }
  - { when: { goal_contains: Fail }, think_ms: 6000, fail: { kind: auth, times: 9 }, say: x }
  - { think_ms: 100, say: fine }
";

fn steps(played: &Played, state: &str) -> usize {
    played.ends().iter().filter(|end| end.starts_with('s') && end.ends_with(state)).count()
}

/// S23: seven of ten succeed. `fail` stops at the first failure and keeps what succeeded before it, `continue` runs the
/// rest and fails, `best_effort` runs the rest and completes. In each, the seven outputs are kept.
#[tokio::test(start_paused = true)]
async fn s23_seven_of_ten_succeed_under_each_policy() {
    for (policy, code, failed, cancelled, reduced) in [
        ("fail", "model_auth", 1, 2, false),
        ("continue", "model_auth", 3, 0, true),
        ("best_effort", "completed", 3, 0, true),
    ] {
        let played = play(SEVEN, &ten(policy)).await;
        assert_eq!(played.code(), code, "{policy}");
        assert_eq!(steps(&played, "succeeded"), 7, "{policy}");
        assert_eq!((steps(&played, "failed"), steps(&played, "cancelled")), (failed, cancelled), "{policy}");
        assert_eq!(played.agents().contains(&"reduce".to_owned()), reduced, "{policy}");
        for at in 0..10 {
            let expected = if [3, 6, 9].contains(&at) { Value::Null } else { json!("fine") };
            assert_eq!(played.value(&format!("o{at}")), expected, "{policy} o{at}");
        }
        if reduced {
            let packet = played.packet("reduce");
            assert_eq!(packet.matches("missing=\"true\"").count(), 3, "{packet}");
            assert_eq!(packet.matches("\"fine\"</input>").count(), 7, "{packet}");
        }
        let left: BTreeSet<AgentId> = alive(&played);
        assert!(left.is_empty(), "{policy} left {left:?}");
    }
}

/// Agents without an end.
fn alive(played: &Played) -> BTreeSet<AgentId> {
    let mut alive = BTreeSet::new();
    for event in &played.events {
        match event {
            Event::AgentSpawned(spawned) => drop(alive.insert(spawned.agent.clone())),
            Event::AgentEnded { agent, .. } => drop(alive.remove(agent)),
            _ => {}
        }
    }
    alive
}
