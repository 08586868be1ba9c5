//! Graphs under budgets, signals, questions and restarts, and graphs that an agent asks for.

use std::sync::Arc;

use serde_json::{Value, json};
use spinney::Shutdown;
use spinney::tree::TreeStatus;
use spinney_journal::pages;
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::primitives::{Actor, Body, CallId, Running, Seq};
use spinney_kernel::record::{Event, Exit, Failure, FailureCode};
use spinney_kernel::rules::request::{Answer, Cancel, Fail, Pause, Raise, Redirect, Request, Send, Unpause};
use spinney_kernel::world::{TreeState, World};
use spinney_store::MemoryJournal;
use spinney_testkit::{TestHome, recorded, settled};

use crate::graphs::{Played, definition, play, play_tree};

/// X4: the group's ceiling stops its steps, and the other group continues.
#[tokio::test(start_paused = true)]
async fn x4_a_group_has_a_budget_of_its_own() {
    let played = play(
        "rules:\n  - { say: four words are said, usage: { input: 1, output: 400 } }\n",
        r"
pipeline:
  on_partial_success: continue
  steps:
    - parallel:
        - { id: a, agent_id: worker, task_description: A. }
        - { id: b, agent_id: worker, task_description: B. }
      id: cheap
      budget: { steps: 1 }
      required: false
    - { id: c, agent_id: worker, task_description: C. }
",
    )
    .await;
    let ends = played.ends();
    assert_eq!(
        ends.iter().filter(|end| end.ends_with("succeeded") && end.len() == 11).count(),
        2,
        "{ends:?}"
    );
    assert!(
        ends.contains(&"cheap failed".to_owned()) && ends.contains(&"c succeeded".to_owned()),
        "{ends:?}"
    );
    assert_eq!(played.code(), "completed");
    let parent = |agent: &str| {
        played.events.iter().find_map(|event| match event {
            Event::AgentSpawned(spawned) if spawned.agent.as_str() == agent => spawned.parent.clone(),
            _ => None,
        })
    };
    assert_eq!(parent("a").unwrap().as_str(), "cheap", "the group's account is in the chain");
    assert_eq!(parent("cheap").unwrap().as_str(), "pipeline");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_a_step_or_group_ends_it() {
    let script =
        "rules:\n  - { when: { goal_contains: slow }, think_ms: 60000, say: late }\n  - { say: fine }\n";
    let pipeline = r"
pipeline:
  steps:
    - { id: a, agent_id: worker, task_description: slow, timeout: 1s, required: false }
    - id: both
      timeout: 2s
      required: false
      sequence:
        - { id: b, agent_id: worker, task_description: quick }
        - { id: c, agent_id: worker, task_description: slow }
        - { id: d, agent_id: worker, task_description: quick }
    - { id: e, agent_id: worker, task_description: quick }
";
    let played = play(script, pipeline).await;
    assert_eq!(played.code(), "completed");
    let ends = played.ends();
    assert_eq!(ends[..2], ["a failed", "b succeeded"]);
    assert_eq!(ends[ends.len() - 3..], ["both failed", "e succeeded", "pipeline succeeded"], "{ends:?}");
    assert!(!played.agents().contains(&"d".to_owned()));
}

/// The root's ceiling halts the tree, and more budget lets the graph continue where it was.
#[tokio::test(start_paused = true)]
async fn a_spent_ceiling_halts_the_graph_and_a_raise_goes_on() {
    let steps: String = (0..4)
        .map(|at| format!("    - {{ id: s{at}, agent_id: worker, task_description: Do {at}. }}\n"))
        .collect();
    let mut definition = definition(&format!("pipeline:\n  steps:\n{steps}"));
    definition.budget.limit = Ceilings::NONE.with(Resource::Steps, 2);
    let stage = TestHome::new("rules:\n  - { say: done }\n");
    let home = stage.home();
    let tree = home.start(definition).await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Halted, "{:?}", snapshot.agents);
    let add = spinney_kernel::budget::Amounts::ZERO.with(Resource::Steps, 2);
    let raise = Raise { agent: "pipeline".parse().unwrap(), add, add_ms: 0 };
    tree.request(Actor::PERSON, raise).await.unwrap();
    let TreeStatus { state, .. } = tree.ended().await;
    assert_eq!(state, TreeState::Ended(spinney_kernel::record::ExitKind::Completed));
    let played = Played::from_tree(&tree, stage).await;
    assert_eq!(played.ends().len(), 5);
}

/// A person cancels the whole graph: everything below it ends, and nothing is undone.
#[tokio::test(start_paused = true)]
async fn cancelling_a_graph_stops_every_step_and_keeps_the_outputs() {
    let script =
        "rules:\n  - { when: { goal_contains: slow }, think_ms: 60000, say: late }\n  - { say: fine }\n";
    let pipeline = r"
pipeline:
  steps:
    - { id: a, agent_id: worker, task_description: quick, output_to: a, undo: Take it back. }
    - parallel:
        - { id: b, agent_id: worker, task_description: slow }
        - { sequence: [{ id: c, agent_id: worker, task_description: slow }] }
    - { id: d, agent_id: worker, task_description: quick }
";
    let stage = TestHome::new(script);
    let tree = stage.home().start(definition(pipeline)).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let cancel = Cancel { agent: "pipeline".parse().unwrap(), reason: "enough".to_owned() };
    tree.request(Actor::PERSON, cancel).await.unwrap();
    tree.ended().await;
    let played = Played::from_tree(&tree, stage).await;
    assert_eq!(played.agents(), ["pipeline", "a", "b", "c"]);
    assert_eq!(played.code(), "cancelled");
    assert_eq!(played.value("a"), json!("fine"));
}

/// Everything that began in the graphs of a tree and has not ended.
fn left_open(events: &[Event]) -> Vec<String> {
    let mut open = Vec::new();
    for event in events {
        match event {
            Event::NodeStarted(start) => open.push((start.graph.clone(), start.frame, start.name.clone())),
            Event::NodeEnded { graph, frame, .. } => {
                let place = open.iter().position(|(of, ix, _)| (of, ix) == (graph, frame));
                open.remove(place.unwrap());
            }
            _ => {}
        }
    }
    open.into_iter().map(|(_, _, name)| name).collect()
}

/// Every step and group that began ends, the inner ones first, also if the root is cancelled, fails or times out while
/// they run or wait for a person, in this process or while none runs the tree.
#[tokio::test(start_paused = true)]
async fn every_step_and_group_that_began_ends_when_its_graph_is_stopped() {
    let script =
        "rules:\n  - { when: { goal_contains: slow }, think_ms: 60000, say: late }\n  - { say: fine }\n";
    let steps = r"
pipeline:
  steps:
    - { id: a, agent_id: worker, task_description: quick, undo: Take it back. }
    - parallel:
        - { id: b, agent_id: worker, task_description: slow }
        - { sequence: [{ id: c, agent_id: worker, task_description: slow }], id: inner, budget: { steps: 5 } }
      id: both
";
    let asks = "pipeline:\n  steps:\n    - { sequence: [{ ask: 'Well?', id: ask }], id: around }\n";
    let undoes = r"
pipeline:
  steps:
    - { id: a, agent_id: worker, task_description: quick, undo: slow }
    - { id: b, agent_id: worker, task_description: quick, output_schema: { type: integer }, retry: 0 }
";
    let root = || "pipeline".parse().unwrap();
    let cancel = || Request::Cancel(Cancel { agent: root(), reason: "enough".to_owned() });
    let error = || Failure { code: FailureCode::from_text("made_up"), message: "enough".to_owned() };
    let fail = || Request::Fail(Fail { agent: root(), error: error(), partial: None });
    for (pipeline, running) in [
        (steps, vec!["b cancelled", "c cancelled", "inner cancelled", "both cancelled"]),
        (asks, vec!["ask cancelled", "around cancelled"]),
        (undoes, vec!["a cancelled"]),
    ] {
        for stop in ["cancel", "fail", "timeout", "cancel while no process runs it"] {
            let stage = TestHome::new(script);
            let home = stage.home();
            let mut plan = definition(pipeline);
            plan.budget.timeout_ms = (stop == "timeout").then_some(5_000);
            plan.budget.timeout_wall = true;
            let tree = home.start(plan).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            match stop {
                "cancel" => drop(tree.request(Actor::PERSON, cancel()).await.unwrap()),
                "fail" => drop(tree.request(Actor::PERSON, fail()).await.unwrap()),
                "timeout" => {}
                _ => {
                    home.shutdown(Shutdown::Kill).await;
                    drop(stage.home().apply(tree.id(), cancel()).await.unwrap());
                }
            }
            tree.ended().await;
            let pages = pages(stage.journal().as_ref(), tree.id(), Seq(0)).blocking();
            let batches = pages.flat_map(Result::unwrap).map(|entry| entry.batch);
            let events: Vec<Event> = batches.flat_map(|batch| batch.events).collect();
            let played = Played { events, stage, took_ms: 0 };
            assert_eq!(left_open(&played.events), [""; 0], "{stop}: {pipeline}");
            assert!(matches!(played.events.last(), Some(Event::AgentEnded { .. })), "{stop}: {pipeline}");
            let mut ends = played.ends();
            let top = ends.pop().unwrap();
            assert!(top.ends_with(" cancelled") || pipeline == undoes, "{stop}: {top}");
            let ended: Vec<&str> = ends.iter().map(String::as_str).collect();
            assert!(running.iter().all(|end| ended.contains(end) || *end == top), "{stop}: {ended:?} {top}");
        }
    }
}

/// The same for a graph that an agent asked for, when that agent is cancelled.
#[tokio::test(start_paused = true)]
async fn the_steps_of_a_graph_below_an_agent_end_with_it() {
    let (script, definition) =
        lead(&json!({ "steps": [{ "id": "slow", "agent_id": "worker", "task_description": "Slow" }] }));
    let stage = TestHome::new(&script.replace("  - { say: '{{ goal }} done' }", "  - { hang: true }"));
    let tree = stage.home().start(definition).await.unwrap();
    stage.model().until_out(1).await;
    tree.cancel("lead".parse().unwrap(), "enough").await.unwrap();
    tree.ended().await;
    let played = Played::from_tree(&tree, stage).await;
    assert_eq!(left_open(&played.events), [""; 0]);
    assert_eq!(played.ends().first().map(String::as_str), Some("slow cancelled"));
}

/// P21 (a graph): pausing it lets running steps end and starts nothing, at any depth.
#[tokio::test(start_paused = true)]
async fn a_paused_graph_starts_nothing_until_it_continues() {
    let pipeline = r"
pipeline:
  steps:
    - sequence:
        - sequence:
            - { id: a, agent_id: worker, task_description: A. }
            - { id: b, agent_id: worker, task_description: B. }
";
    let stage = TestHome::new("rules:\n  - { think_ms: 1000, say: done }\n");
    let tree = stage.home().start(definition(pipeline)).await.unwrap();
    let pipeline = || "pipeline".parse().unwrap();
    tree.request(Actor::PERSON, Pause { agent: pipeline() }).await.unwrap();
    assert_eq!(settled(&tree).await.state, TreeState::Paused);
    assert_eq!(stage.model().attempts().len(), 1, "only the running step ended");
    tree.request(Actor::PERSON, Unpause { agent: pipeline(), until_resumed: false }).await.unwrap();
    tree.ended().await;
    assert_eq!(stage.model().attempts().len(), 2);
}

/// O13 (one question of a graph): a person decides in the middle of it, and the answer is a value that steps read.
#[tokio::test(start_paused = true)]
async fn a_person_is_asked_and_the_answer_is_a_value() {
    let pipeline = r"
pipeline:
  steps:
    - { id: draft, agent_id: writer, task_description: Draft., output_to: text }
    - { ask: 'Ship {{ text }}?', id: ok, output_to: ok }
    - { id: ship, agent_id: worker, task_description: Ship., when: ok == 'yes' }
";
    for (answer, end) in [("yes", "ship succeeded"), ("no", "ship skipped")] {
        let stage = TestHome::new("rules:\n  - { say: a draft }\n");
        let tree = stage.home().start(definition(pipeline)).await.unwrap();
        assert_eq!(settled(&tree).await.state, TreeState::Waiting);
        let question = recorded_questions(&tree).await;
        assert_eq!(question.1, "Ship a draft?");
        tree.request(Actor::PERSON, Answer::new(question.0, answer)).await.unwrap();
        tree.ended().await;
        let played = Played::from_tree(&tree, stage).await;
        assert_eq!(played.ends()[2], end);
    }
}

/// The open question of a tree that waits.
async fn recorded_questions(tree: &spinney::Tree) -> (CallId, String) {
    let mut events = tree.watch(spinney::bus::Watch::default());
    loop {
        let traced = events.next_event().await.unwrap().unwrap();
        if let Event::QuestionAsked { call, question, .. } = &traced.recorded.event {
            return (*call, question.text.clone());
        }
    }
}

/// Deciding the journal's inputs again, and applying its events, give the same tree. So a crash repeats nothing.
#[tokio::test(start_paused = true)]
async fn a_graph_replays_to_the_same_events() {
    let journal = Arc::new(MemoryJournal::new());
    let stage = TestHome::on(
        journal,
        "rules:\n  - { when: { goal_contains: 'C 1' }, fail: { kind: auth, times: 9 }, say: x }\n  - { say: '[\"x\", \"y\"]' }\n",
    );
    let pipeline = r"
pipeline:
  steps:
    - { id: a, agent_id: lister, task_description: A., output_to: list, undo: Undo. }
    - { map: [{ id: b, agent_id: worker, task_description: 'B {{ item }}.' }], over: list, output_to: all }
    - { vote: { id: v, agent_id: worker, task_description: V. }, voters: 3, output_to: voted }
    - { race: [{ id: r, agent_id: worker, task_description: R. }, { id: s, agent_id: worker, task_description: S. }] }
    - { loop: [{ id: c, agent_id: worker, task_description: 'C {{ round }}.' }], until: 'false', max_rounds: 2 }
";
    let tree = stage.home().start(definition(pipeline)).await.unwrap();
    tree.ended().await;
    let events: Vec<Event> = recorded(&tree).await.into_iter().map(|recorded| recorded.event).collect();
    let verified = spinney::tree::verify(stage.journal().as_ref(), tree.id(), None).await;
    assert!(verified.is_ok(), "{verified:?}");
    let mut world = World::new(tree.id());
    events.iter().for_each(|event| world.apply(event));
    assert!(world.is_over() && world.graphs().run(world.agents().root().unwrap()).is_none());
}

/// What an agent of a graph or group would have to read is refused with the remedy; the agent of a step reads it.
#[tokio::test(start_paused = true)]
async fn agents_that_stand_for_steps_refuse_messages_and_redirections() {
    let pipeline = r"
pipeline:
  steps:
    - id: group
      budget: { steps: 9 }
      sequence: [{ id: a, agent_id: worker, task_description: A. }]
";
    let stage = TestHome::new("rules:\n  - { think_ms: 1000, say: done }\n");
    let tree = stage.home().start(definition(pipeline)).await.unwrap();
    let redirect = |agent: &str| Redirect {
        agent: agent.parse().unwrap(),
        instruction: "Elsewhere.".to_owned(),
        tokens: None,
        running: Running::Finishes,
    };
    for agent in ["pipeline", "group"] {
        let message = Send::plain(agent.parse().unwrap(), Body::text("hello"));
        for error in [
            tree.request(Actor::PERSON, message).await.unwrap_err().to_string(),
            tree.request(Actor::PERSON, redirect(agent)).await.unwrap_err().to_string(),
        ] {
            let wanted = "is a pipeline, not an agent: name the agent of a running step";
            assert!(error.contains(&format!("`{agent}` {wanted}")), "{error}");
        }
    }
    tree.request(Actor::PERSON, redirect("a")).await.unwrap();
    tree.ended().await;
    assert_eq!(Played::from_tree(&tree, stage).await.code(), "completed");
}

fn lead(pipeline: &Value) -> (String, spinney_kernel::definition::Definition) {
    let args = serde_json::to_string(pipeline).unwrap();
    let script = format!(
        "rules:\n  - {{ when: {{ agent: lead, turn: 1 }}, call: [{{ tool: run_pipeline, args: {args} }}] }}\n  \
         - {{ when: {{ agent: lead }}, say: '{{{{ last }}}}' }}\n  - {{ when: {{ goal_contains: Fail }}, fail: {{ kind: auth, times: 9 }}, say: x }}\n  \
         - {{ say: '{{{{ goal }}}} done' }}\n"
    );
    let text = r"
name: test
goal: Lead.
budget: { cost_usd: 9, tokens: 100000 }
models:
  m: { provider: scripted, script: s.yaml, price: { input_per_mtok_usd: 0, output_per_mtok_usd: 1 } }
agents:
  lead: { model: m, tools: [run_pipeline, read_context] }
  worker: { model: m }
  other: { model: m, tools: [spawn_agent] }
entry: lead
";
    let file = spinney::tree_file::TreeFile::parse("tree.yaml", text).unwrap();
    (script, file.definition)
}

/// What the lead read as the result of its call.
fn told(played: &Played) -> String {
    let attempts = played.stage.model().attempts();
    let last = attempts.iter().rev().find(|attempt| attempt.origin.agent().as_str() == "lead").unwrap();
    last.packet.messages.iter().map(|message| message.text().into_owned()).collect::<Vec<_>>().join("\n")
}

/// O11
#[tokio::test(start_paused = true)]
async fn o11_an_agent_runs_a_pipeline_below_itself_and_reads_its_result() {
    let (script, definition) = lead(&json!({ "steps": [
        { "agent_id": "worker", "task_description": "One", "output_to": "one" },
        { "agent_id": "worker", "task_description": "Two after {% raw %}{{ one }}{% endraw %}", "output_to": "two" },
    ] }));
    let played = play_tree(&script, definition).await;
    assert_eq!(played.exit().0, Exit::Completed);
    let told = told(&played);
    for part in [
        r#""succeeded":["worker","worker-2"]"#,
        r#""failed":[]"#,
        r#""one":"One done""#,
        r#""two":"Two after One done done""#,
        r#""trace_id":""#,
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    let path: Vec<_> = played.agents();
    assert_eq!(path[0], "lead");
    assert!(path[1].starts_with("pipeline-"), "{path:?}");
    assert_eq!(path[2..], ["worker", "worker-2"]);
}

/// O11, O12: the real error reaches the caller.
#[tokio::test(start_paused = true)]
async fn a_failed_pipeline_tells_its_caller_why() {
    let (script, definition) =
        lead(&json!({ "steps": [{ "id": "bad", "agent_id": "worker", "task_description": "Fail" }] }));
    let played = play_tree(&script, definition).await;
    let told = told(&played);
    assert!(told.contains(r#""failed":["bad"]"#) && told.contains("model_auth"), "{told}");
}

/// O11
#[tokio::test(start_paused = true)]
async fn o11_a_bad_pipeline_is_refused_before_any_step_and_the_refusal_teaches_the_fix() {
    for (steps, part) in [
        (
            json!([{ "agent_id": "wroker", "task_description": "x" }]),
            "unknown agent `wroker`: did you mean `worker`?",
        ),
        (
            json!([
                { "agent_id": "worker", "task_description": "x", "input_from": ["b"], "output_to": "a" },
                { "agent_id": "worker", "task_description": "x", "input_from": ["a"], "output_to": "b" },
            ]),
            "a cycle",
        ),
        (
            json!([
                { "agent_id": "worker", "task_description": "x", "output_to": "a" },
                { "agent_id": "worker", "task_description": "x", "output_to": "a" },
            ]),
            "steps[1].output_to: `a` is the output of `worker`, too",
        ),
        (json!([{ "agent_id": "worker", "task_description": "x", "outputs": "a" }]), "unknown key `outputs`"),
        (json!([{ "agent_id": "lead", "task_description": "x" }]), "role `lead` is already an ancestor here"),
        (json!([{ "agent_id": "other", "task_description": "x" }]), "not allowed here: `spawn_agent`"),
    ] {
        let (script, definition) = lead(&json!({ "steps": steps }));
        let played = play_tree(&script, definition).await;
        let told = told(&played);
        assert!(told.contains(part), "{part} is not in {told}");
        assert_eq!(played.agents(), ["lead"], "{part}");
    }
}
