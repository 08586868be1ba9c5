//! Shared values on the real runtime: what agents read, what is stored, crashes, branches and the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use spinney::tree::{BranchOff, shared_values, verify};
use spinney::tree_file::TreeFile;
use spinney::{Drivers, FunctionModel, Home, Shutdown, StartOptions};
use spinney_journal::Journal;
use spinney_kernel::budget::{Ceilings, Resource, Used};
use spinney_kernel::port::model::{ModelAnswer, ModelAttempt};
use spinney_kernel::primitives::{Actor, AgentId, TreeId, limit};
use spinney_kernel::record::{Event, ExitKind, ToolAsk};
use spinney_kernel::rules::request::{Answer, WriteValue};
use spinney_kernel::world::{TreeState, World};
use spinney_store::MemoryJournal;
use spinney_testkit::{TestHome, recorded, settled};
use tokio::sync::Barrier;

/// What an agent's model was shown as tool results, in order.
fn results(stage: &TestHome, agent: &str) -> Vec<String> {
    let attempts = stage.model().attempts();
    let last = attempts.iter().rfind(|attempt| attempt.origin.agent().as_str() == agent).unwrap();
    let messages = last.packet.messages.iter();
    let results = messages
        .filter(|message| matches!(message.as_ref(), spinney_kernel::context::Message::Result { .. }));
    results.map(|message| message.text().into_owned()).collect()
}

/// S8, X7: two agents work on one value: each reads what the other wrote, with version and author; a write that
/// expects an old version is refused, the agent reads again and writes; an agent in neither rule reads nothing.
#[tokio::test(start_paused = true)]
async fn s8_x7_agents_share_a_value_with_author_version_and_access() {
    let stage = TestHome::new(
        "
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: write_context, args: { key: plan, value: { steps: [a] }, expect_version: 0 } } ]
  - when: { agent: root, turn: 2 }
    call: [ { tool: spawn_agent, args: { agent: editor, id: editor, goal: Edit the plan. } } ]
  - when: { agent: root, turn: 3 }
    call: [ { tool: write_context, args: { key: plan, value: lost, expect_version: 1 } }, { tool: read_context, args: { key: plan } } ]
  - when: { agent: root, turn: 4 }
    call: [ { tool: write_context, args: { key: plan, value: { steps: [a, b, c] }, expect_version: 2 } } ]
  - { when: { agent: root }, say: done }
  - when: { agent: editor, turn: 1 }
    call: [ { tool: read_context, args: { key: plan } }, { tool: write_context, args: { key: budget, value: 1 } } ]
  - when: { agent: editor, turn: 2 }
    call: [ { tool: write_context, args: { key: plan, value: { steps: [a, b] } } }, { tool: list_context } ]
  - { when: { agent: editor }, say: edited }
",
    );
    let home = stage.home();
    let mut definition = spinney_testkit::definition("root $9.00 turns=9 / editor later turns=9");
    definition.shared =
        serde_json::from_value(json!({ "budget": { "read": ["root"], "write": ["root"] } })).unwrap();
    let tree = home.start(definition).await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    insta::assert_snapshot!(results(&stage, "root").join("\n"), @r#"
    wrote plan version 1
    edited
    `plan` has version 2, not 1: read it again, and write with `expect_version: 2`
    plan version 2, 19 bytes, written by editor:
    {"steps":["a","b"]}
    wrote plan version 3
    "#);
    insta::assert_snapshot!(results(&stage, "editor").join("\n"), @r#"
    plan version 1, 15 bytes, written by root:
    {"steps":["a"]}
    role `editor` may not write `budget`, only `root` may: choose another key
    wrote plan version 2
    plan version 2, 19 bytes, written by editor
    "#);
    let values = tree.shared().await.unwrap();
    let (name, plan) = values.all().next().unwrap();
    let root: AgentId = "root".parse().unwrap();
    assert_eq!((name.as_str(), plan.version, &plan.by), ("plan", 3, &Actor::Agent(root)));
    assert!(values.is_cleared() && values.all().count() == 1);
    assert_eq!(tree.shared_value("plan").await.unwrap(), Some(json!({ "steps": ["a", "b", "c"] })));
    assert_eq!(tree.shared_value("budget").await.unwrap(), None);
    home.shutdown(Shutdown::Stop).await;
    verify(stage.journal().as_ref(), tree.id(), None).await.unwrap();
}

/// What the models of trees read last in each turn.
type LastRead = Arc<Mutex<BTreeMap<TreeId, Vec<String>>>>;

/// Models that make the calls of their tree, one in each turn. Before their second turn the trees wait for each other.
fn calling(calls: BTreeMap<TreeId, Vec<ToolAsk>>, read: &LastRead) -> Drivers {
    let (together, read) = (Arc::new(Barrier::new(calls.len())), Arc::clone(read));
    let model = FunctionModel::new(move |attempt: Arc<ModelAttempt>| {
        let (tree, turn) = (attempt.origin.tree, attempt.turn as usize);
        let last = attempt.packet.messages.last().unwrap().text().into_owned();
        read.lock().unwrap().entry(tree).or_default().push(last);
        let asks = calls[&tree].get(turn - 1).cloned().into_iter().collect();
        let together = Arc::clone(&together);
        async move {
            if turn == 2 {
                together.wait().await;
            }
            Ok(ModelAnswer::text("Hm.").with_asks(asks).with_used(Used::Tokens(Default::default())))
        }
    });
    let model: Arc<FunctionModel> = Arc::new(model);
    let with = |drivers: Drivers, name: &str| {
        drivers.with_model(name.parse().unwrap(), Arc::<FunctionModel>::clone(&model))
    };
    ["m", "cheap", "free"].into_iter().fold(Drivers::new(), with)
}

fn writes(key: &str, json: &str) -> ToolAsk {
    ToolAsk::new("c", "write_context", format!(r#"{{"key":"{key}","value":{json}}}"#))
}

fn reads(key: &str) -> ToolAsk {
    ToolAsk::new("c", "read_context", json!({ "key": key }).to_string())
}

/// Runs a tree for each list of calls, all at once, and returns what the model of each read after each of its calls.
/// Their ids begin with `first`.
async fn run_together(
    journal: &Arc<MemoryJournal>,
    first: u8,
    calls: Vec<Vec<ToolAsk>>,
) -> Vec<(TreeId, Vec<String>)> {
    let ids: Vec<TreeId> = (first..).take(calls.len()).map(|number| TreeId::new([number; 16])).collect();
    let read = LastRead::default();
    let drivers = calling(ids.iter().copied().zip(calls).collect(), &read);
    let home = Home::open(Arc::clone(journal) as Arc<dyn Journal>, drivers);
    let mut trees = Vec::new();
    for id in &ids {
        trees.push(
            home.start_with(
                spinney_testkit::definition("root turns=40"),
                StartOptions::default().with_id(*id),
            )
            .await
            .unwrap(),
        );
    }
    for tree in &trees {
        assert_eq!(settled(tree).await.state, TreeState::Ended(ExitKind::Completed));
    }
    home.shutdown(Shutdown::Stop).await;
    let mut read = read.lock().unwrap();
    ids.into_iter().map(|id| (id, read.remove(&id).unwrap().split_off(1))).collect()
}

/// O3: trees that run at the same time and write the same key do not see each other's value, and what an agent makes of
/// a value that it read does not change it. A value of 1,048,576 bytes is taken, is one blob of the journal, and is
/// what every agent reads; one byte more is refused, and so is NaN and what a tree has no room for. A written null is
/// found.
#[tokio::test(start_paused = true)]
async fn o3_values_belong_to_their_tree_and_have_a_size() {
    let journal = Arc::new(MemoryJournal::new());
    let text = |bytes: usize| Value::String("x".repeat(bytes - 2));
    let largest = text(limit::VALUE_BYTES_MAX);
    let values = [largest.clone(), Value::Null, json!({ "a": [1, 2.5, "ü"] }), json!(7)];
    let plan = |value: &Value| {
        let (json, changed) = (value.to_string(), json!([value, "changed"]).to_string());
        let changed = if *value == largest { "1".to_owned() } else { changed };
        vec![writes("k", &json), reads("k"), writes("copy", &changed), reads("k")]
    };
    let trees = run_together(&journal, 1, values.iter().map(plan).collect()).await;
    for ((tree, read), value) in trees.iter().zip(&values) {
        let json = value.to_string();
        let found = format!("k version 1, {} bytes, written by root:\n", json.len());
        assert_eq!(read[0], "wrote k version 1");
        for read in [&read[1], &read[3]] {
            let shown = read.strip_prefix(&found).unwrap();
            assert!(shown == json || (*value == largest && json.starts_with(&shown[..100])), "{read:.200}");
        }
        let stored = shared_values(journal.as_ref(), *tree).await.unwrap();
        let found = stored.find("k").unwrap();
        assert!(spinney::tree::shared_json(journal.as_ref(), found).await.unwrap() == json);
        assert_eq!((found.version, found.bytes()), (1, json.len() as u64));
        assert_eq!(found.body.rest().is_some(), *value == largest);
        verify(journal.as_ref(), *tree, None).await.unwrap();
    }
    let largest = largest.to_string();
    let mut calls = vec![writes("k", &text(limit::VALUE_BYTES_MAX + 1).to_string())];
    calls.extend(["NaN", "-Infinity", "1e999"].map(|number| writes("k", number)));
    calls.push(reads("k"));
    calls.extend((0..16).map(|number| writes(&format!("k{number}"), &largest)));
    calls.extend([writes("k16", "1"), writes("k0", "null"), writes("k16", "1"), reads("k0")]);
    let answers = run_together(&journal, 9, vec![calls]).await.remove(0).1;
    let is_written = |answer: &&String| answer.starts_with("wrote k") && answer.ends_with(" version 1");
    assert_eq!(answers.iter().filter(is_written).count(), 17);
    let others: Vec<&str> = answers.iter().filter(|answer| !is_written(answer)).map(String::as_str).collect();
    insta::assert_snapshot!(others.join("\n"), @"
    `k` would have 1048577 bytes and the limit is 1048576: write a shorter value, or several
    bad arguments for `write_context`: expected value at line 1 column 20; write one JSON object with the fields it takes
    bad arguments for `write_context`: invalid number at line 1 column 21; write one JSON object with the fields it takes
    bad arguments for `write_context`: `value` is not JSON that can be read; write one JSON object with the fields it takes
    unknown value `k`: list_context lists the values
    the shared values would have 16777217 bytes with `k16` and the limit is 16777216: write null over values that are no longer needed
    wrote k0 version 2
    k0 version 2, 4 bytes, written by root:
    null
    ");
}

/// A long value is shown as head and tail, with a file in the reader's workspace as any long output.
#[tokio::test(start_paused = true)]
async fn a_long_value_is_shown_as_head_and_tail() {
    let (id, json) = (TreeId::new([1; 16]), json!("x".repeat(limit::TEXT_BYTES_MAX)).to_string());
    let calls = BTreeMap::from([(id, vec![writes("k", &json), reads("k")])]);
    let home = Home::open(Arc::new(MemoryJournal::new()), calling(calls, &LastRead::default()));
    let tree = home
        .start_with(spinney_testkit::definition("root turns=9"), StartOptions::default().with_id(id))
        .await
        .unwrap();
    settled(&tree).await;
    let events = recorded(&tree).await;
    let read = events.iter().find_map(|recorded| match &recorded.event {
        Event::ToolAnswered { body, value: Some(read), .. } => Some((body.text.clone(), read.clone())),
        _ => None,
    });
    let (text, read) = read.unwrap();
    assert_eq!(text, "k version 1, 32770 bytes, written by root:\n");
    assert_eq!(read.rest.unwrap().bytes, 32_770);
}

/// O4 (root's end), S8 (crash): a tree that is killed between the writes continues with the versions that it had, and at
/// the root's end the values are gone for agents and kept for people. A branch from before the end has them.
#[tokio::test(start_paused = true)]
async fn o4_values_survive_a_crash_and_end_with_the_root() {
    let stage = TestHome::new(
        "
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: write_context, args: { key: a, value: 1 } } ]
  - when: { agent: root, turn: 2 }
    call: [ { tool: ask_human, args: { question: 'Go on?' } } ]
  - when: { agent: root, turn: 3 }
    call: [ { tool: write_context, args: { key: a, value: 2, expect_version: 1 } }, { tool: read_context, args: { key: a } } ]
  - { say: '{{ last }}' }
",
    );
    let first = stage.home();
    let tree = stage.start(&first, "root $9.00 turns=9").await;
    settled(&tree).await;
    first.shutdown(Shutdown::Kill).await;
    let home = stage.home();
    let tree = home.resume(tree.id()).await.unwrap();
    let snapshot = settled(&tree).await;
    assert!(!tree.shared().await.unwrap().is_cleared());
    tree.answer(snapshot.questions[0].question, "yes").await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.end.unwrap().shown.text, "a version 2, 1 bytes, written by root:\n2");
    let values = tree.shared().await.unwrap();
    assert!(values.is_cleared());
    assert_eq!(values.find("a").unwrap().body.text, "2");
    let events = recorded(&tree).await;
    let [.., cleared, ended] = events.as_slice() else { panic!("{events:?}") };
    assert!(matches!(cleared.event, Event::ValuesCleared { count: 1 }), "{cleared:?}");
    assert!(matches!(ended.event, Event::AgentEnded { .. }), "{ended:?}");
    home.shutdown(Shutdown::Stop).await;
    verify(stage.journal().as_ref(), tree.id(), None).await.unwrap();
}

/// A pipeline whose first step runs a pipeline that runs another one. The agents of all three write and read values.
const NESTED: &str = r"
name: test
goal: Do it.
budget: { cost_usd: 9, timeout: 1h }
limits: { depth: 9 }
models:
  m: { provider: scripted, script: s.yaml, price: { input_per_mtok_usd: 0, output_per_mtok_usd: 1 } }
agents:
  lead: { model: m, tools: [run_pipeline, write_context, list_context] }
  middle: { model: m, tools: [run_pipeline, write_context, list_context] }
  worker: { model: m, tools: [write_context, list_context] }
pipeline:
  steps:
    - { id: first, agent_id: lead, task_description: Begin., output_to: begun }
    - { id: last, agent_id: worker, task_description: Finish., input_from: [begun], output_to: finished }
";

const NESTED_SCRIPT: &str = "
rules:
  - { when: { agent: worker, goal_contains: Finish, turn: 1 }, call: [ { tool: list_context } ] }
  - { when: { agent: worker, goal_contains: Finish }, LAST }
  - { when: { turn: 1 }, call: [ { tool: write_context, args: { key: 'by_{{ agent }}', value: '{{ agent }}' } } ] }
  - { when: { agent: lead, turn: 2 }, call: [ { tool: run_pipeline, args: { steps: [{ agent_id: middle, task_description: Go on., output_to: of_middle }] } } ] }
  - { when: { agent: middle, turn: 2 }, call: [ { tool: run_pipeline, args: { steps: [{ agent_id: worker, task_description: Work., output_to: of_worker }] } } ] }
  - { when: { turn: 3 }, call: [ { tool: list_context } ] }
  - { say: '{{ agent }} is done' }
";

/// O4: when a pipeline below an agent finishes, everything that was written before and in it remains, three levels deep.
/// When the root ends, completed, failed, cancelled or out of time, agents have no values any more, and what the
/// steps brought was captured before that.
#[tokio::test(start_paused = true)]
async fn o4_values_outlive_nested_pipelines_and_end_with_the_root() {
    for (last, state) in [
        ("say: fine", ExitKind::Completed),
        ("fail: { kind: auth, times: 9 }, say: x", ExitKind::Failed),
        ("hang: true", ExitKind::Cancelled),
        ("hang: true", ExitKind::Failed),
    ] {
        let stage = TestHome::new(&NESTED_SCRIPT.replace("LAST", last));
        let definition = TreeFile::parse("tree.yaml", NESTED).unwrap().definition;
        let tree = stage.home().start(definition).await.unwrap();
        if state == ExitKind::Cancelled {
            // Its last step hangs by then.
            tokio::time::sleep(Duration::from_secs(60)).await;
            tree.cancel("pipeline".parse().unwrap(), "enough").await.unwrap();
        }
        assert_eq!(tree.ended().await.state, TreeState::Ended(state), "{last}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(results(&stage, "last").join("\n"), @"
            begun version 1, 14 bytes, written by first
            by_lead version 1, 6 bytes, written by first
            by_middle version 1, 8 bytes, written by middle
            by_worker version 1, 8 bytes, written by worker
            of_middle version 1, 16 bytes, written by middle
            of_worker version 1, 16 bytes, written by worker
            ");
        }
        let events: Vec<Event> = recorded(&tree).await.into_iter().map(|recorded| recorded.event).collect();
        let [before @ .., Event::ValuesCleared { count }, Event::AgentEnded { agent, .. }] =
            events.as_slice()
        else {
            panic!("{last}: {events:?}")
        };
        assert_eq!(agent.as_str(), "pipeline");
        assert!(!before.iter().any(|event| matches!(event, Event::ValuesCleared { .. })), "{last}");
        let mut world = World::new(tree.id());
        events.iter().for_each(|event| world.apply(event));
        assert!(world.shared().is_empty());
        // People still find them.
        let values = tree.shared().await.unwrap();
        assert!(values.is_cleared() && values.all().count() as u64 == u64::from(*count));
        assert_eq!(tree.shared_value("begun").await.unwrap(), Some(json!("lead is done")));
        let finished = (state == ExitKind::Completed).then(|| json!("fine"));
        assert_eq!(tree.shared_value("finished").await.unwrap(), finished);
        verify(stage.journal().as_ref(), tree.id(), None).await.unwrap();
    }
}

/// A branch from before the root's end has the values of that moment and goes its own way. A rollback of an agent does
/// not undo what it wrote: the next version follows the last one.
#[tokio::test(start_paused = true)]
async fn a_branch_has_the_values_and_a_rollback_keeps_them() {
    let stage = TestHome::new(
        "
rules:
  - when: { turn: 1 }
    call: [ { tool: write_context, args: { key: a, value: 1 } } ]
  - when: { turn: 2 }
    call: [ { tool: ask_human, args: { question: 'Go on?' } } ]
  - when: { last_contains: more }
    call: [ { tool: write_context, args: { key: a, value: 2 } }, { tool: ask_human, args: { question: 'And now?' } } ]
  - { say: '{{ last }}' }
",
    );
    let root: AgentId = "root".parse().unwrap();
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9").await;
    let snapshot = settled(&tree).await;
    let then = tree.checkpoint(root.clone(), None).await.unwrap();
    tree.answer(snapshot.questions[0].question, "more").await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!(tree.shared().await.unwrap().find("a").unwrap().version, 2, "{snapshot:?}");
    let at = spinney_journal::find(stage.journal().as_ref(), &then).await.unwrap().unwrap().known.seq;
    let budget = Ceilings::NONE.with(Resource::Cost, 1_000_000_000);
    let id = home.draw_id();
    home.branch(id, BranchOff { from: tree.id(), at, agent: root, budget }).await.unwrap();
    let branch = home.resume(id).await.unwrap();
    settled(&branch).await;
    let values = branch.shared().await.unwrap();
    let value = values.find("a").unwrap();
    assert_eq!((value.version, value.body.text.as_str(), values.is_cleared()), (1, "1", false));
    tree.roll_back(&then, None).await.unwrap();
    settled(&tree).await;
    let values = tree.shared().await.unwrap();
    let value = values.find("a").unwrap();
    assert_eq!((value.version, value.body.text.as_str()), (2, "2"));
    home.shutdown(Shutdown::Stop).await;
    for tree in [tree.id(), id] {
        verify(stage.journal().as_ref(), tree, None).await.unwrap();
    }
}

/// A person writes a value while the tree runs: an agent reads it with its author, access rules do not concern people,
/// and what is not JSON, too long, of another version or reserved is refused with the remedy.
#[tokio::test(start_paused = true)]
async fn a_person_writes_a_shared_value_that_an_agent_reads() {
    let stage = TestHome::new(
        "
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: ask_human, args: { question: Ready? } } ]
  - when: { agent: root, turn: 2 }
    call: [ { tool: read_context, args: { key: plan } } ]
  - { when: { agent: root }, say: done }
",
    );
    let mut definition = spinney_testkit::definition("root $9.00 turns=9");
    definition.shared = serde_json::from_value(json!({ "plan": { "write": [] } })).unwrap();
    let tree = stage.home().start(definition).await.unwrap();
    let snapshot = settled(&tree).await;
    let write = |json: &str, expect_version: Option<u64>| WriteValue {
        name: "plan".parse().unwrap(),
        json: json.to_owned(),
        expect_version,
        tokens: None,
    };
    let refused = async |verb: WriteValue| tree.request(Actor::PERSON, verb).await.unwrap_err().to_string();
    assert!(refused(write("ash", None)).await.contains("not JSON: put text in double quotes"));
    assert!(refused(write("1", Some(1))).await.contains("there is no value `plan` yet"));
    let long = json!("x".repeat(limit::TEXT_BYTES_MAX)).to_string();
    assert!(refused(write(&long, None)).await.contains("32770"), "{}", refused(write(&long, None)).await);
    let reserved = WriteValue { name: "pipeline.progress".parse().unwrap(), ..write("1", None) };
    assert!(refused(reserved).await.contains("pipeline.progress"));
    let by_agent = tree.request(Actor::Agent("root".parse().unwrap()), write("1", None)).await;
    assert!(by_agent.unwrap_err().to_string().contains("write_context"));
    let first = tree.request(Actor::PERSON, write(r#"{ "steps": ["a"] }"#, Some(0))).await.unwrap();
    let second = tree.request(Actor::PERSON, write(r#"["b"]"#, Some(1))).await.unwrap();
    assert_eq!((first.version, second.version), (1, 2));
    let answer = Answer::new(snapshot.questions[0].question, "yes");
    tree.request(Actor::PERSON, answer).await.unwrap();
    tree.ended().await;
    insta::assert_snapshot!(results(&stage, "root")[1], @r#"
    plan version 2, 5 bytes, written by person:
    ["b"]
    "#);
    let verified = verify(stage.journal().as_ref(), tree.id(), None).await.unwrap();
    assert!(verified.decided);
}
