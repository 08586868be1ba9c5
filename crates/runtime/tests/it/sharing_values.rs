//! Shared values on the real runtime: what agents read, what is stored, crashes, branches and the end.

use std::sync::Arc;

use serde_json::{Value, json};
use spinney::tree::{BranchOff, shared_values, verify};
use spinney::{Drivers, FunctionModel, Home, Shutdown};
use spinney_kernel::budget::{Ceilings, Resource, Used};
use spinney_kernel::port::model::ModelAnswer;
use spinney_kernel::record::{Event, ExitKind, ToolAsk};
use spinney_kernel::rules::request::{Answer, WriteValue};
use spinney_kernel::words::{AgentId, Body, By, limit};
use spinney_kernel::world::TreeState;
use spinney_store::MemoryJournal;
use spinney_testkit::{Stage, recorded, settled};

/// What an agent's model was shown as tool results, in order.
fn results(stage: &Stage, agent: &str) -> Vec<String> {
    let attempts = stage.model().attempts();
    let last = attempts.iter().rfind(|attempt| attempt.origin.agent().as_str() == agent).unwrap();
    let messages = last.packet.messages.iter();
    let results = messages
        .filter(|message| matches!(message.as_ref(), spinney_kernel::context::Message::Result { .. }));
    results.map(|message| message.text().into_owned()).collect()
}

/// S8, X7: two agents work on one value: each reads what the other wrote, with version and author; a write that
/// expects an old version is refused, the agent reads again and writes; whoever is in neither rule reads nothing.
#[tokio::test(start_paused = true)]
async fn s8_x7_agents_share_a_value_with_author_version_and_access() {
    let stage = Stage::new(
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
    let look = settled(&tree).await;
    assert_eq!(look.state, TreeState::Ended(ExitKind::Completed));
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
    assert_eq!((name.as_str(), plan.version, &plan.by), ("plan", 3, &By::Agent(root)));
    assert!(values.is_cleared() && values.all().count() == 1);
    assert_eq!(tree.shared_value("plan").await.unwrap(), Some(json!({ "steps": ["a", "b", "c"] })));
    assert_eq!(tree.shared_value("budget").await.unwrap(), None);
    home.shutdown(Shutdown::Stop).await;
    verify(stage.journal().as_ref(), tree.id(), None).await.unwrap();
}

/// A model that writes a value of its first argument, and then reads it.
fn drivers(key: &'static str, value: Value) -> Drivers {
    let model = FunctionModel::new(move |attempt| {
        let turn = attempt
            .packet
            .messages
            .iter()
            .filter(|message| matches!(message.as_ref(), spinney_kernel::context::Message::Said { .. }));
        let (turn, value) = (turn.count(), value.clone());
        async move {
            let ask = |tool: &str, args: Value| vec![ToolAsk::new("c", tool, args.to_string())];
            let asks = match turn {
                0 => ask("write_context", json!({ "key": key, "value": value })),
                1 => ask("read_context", json!({ "key": key })),
                _ => Vec::new(),
            };
            Ok(ModelAnswer { asks, used: Used::Tokens(Default::default()), ..ModelAnswer::said("Hm.") })
        }
    });
    let model = Arc::new(model);
    let with = |drivers: Drivers, name: &str| {
        drivers.with_model(name.parse().unwrap(), Arc::<FunctionModel>::clone(&model))
    };
    ["m", "cheap", "free"].into_iter().fold(Drivers::new(), with)
}

/// O3: trees that write the same key do not see each other's value; a value of 1,048,576 bytes is taken, is one blob
/// of the journal, and is what everybody reads; one byte more is refused; a written null is found.
#[tokio::test(start_paused = true)]
async fn o3_values_belong_to_their_tree_and_have_a_size() {
    let journal = Arc::new(MemoryJournal::new());
    let text = |bytes: usize| Value::String("x".repeat(bytes - 2));
    let largest = text(limit::VALUE_BYTES_MAX);
    let values = [largest.clone(), Value::Null, json!({ "a": [1, 2.5, "ü"] })];
    let mut trees = Vec::new();
    for value in &values {
        let home = Home::open(
            Arc::clone(&journal) as Arc<dyn spinney_journal::Journal>,
            drivers("k", value.clone()),
        );
        let tree = home.start(spinney_testkit::definition("root turns=9")).await.unwrap();
        let look = settled(&tree).await;
        assert_eq!(look.state, TreeState::Ended(ExitKind::Completed), "{look:?}");
        home.shutdown(Shutdown::Stop).await;
        trees.push(tree.id());
    }
    for (tree, value) in trees.iter().zip(&values) {
        let stored = shared_values(journal.as_ref(), *tree).await.unwrap();
        let found = stored.find("k").unwrap();
        let json = spinney::tree::shared_json(journal.as_ref(), found).await.unwrap();
        assert!(serde_json::from_str::<Value>(&json).unwrap() == *value);
        assert_eq!((found.version, found.bytes()), (1, value.to_string().len() as u64));
        assert_eq!(found.body.rest().is_some(), *value == largest);
        verify(journal.as_ref(), *tree, None).await.unwrap();
    }
    let home = Home::open(journal, drivers("k", text(limit::VALUE_BYTES_MAX + 1)));
    let tree = home.start(spinney_testkit::definition("root turns=9")).await.unwrap();
    settled(&tree).await;
    let answers: Vec<String> = recorded(&tree)
        .await
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::ToolAnswered { body, is_error: true, .. } => Some(body.text),
            _ => None,
        })
        .collect();
    insta::assert_snapshot!(answers.join("\n"), @"
    `k` would have 1048577 bytes and the limit is 1048576: write a shorter value, or several
    no value is called `k`: list_context shows which there are
    ");
}

/// A long value is shown as head and tail, with a file in the reader's workspace as any long output.
#[tokio::test(start_paused = true)]
async fn a_long_value_is_shown_as_head_and_tail() {
    let journal = Arc::new(MemoryJournal::new());
    let value = Value::String("x".repeat(limit::TEXT_BYTES_MAX));
    let home = Home::open(journal, drivers("k", value));
    let tree = home.start(spinney_testkit::definition("root turns=9")).await.unwrap();
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

/// O4 (root's end), S8 (crash): a tree that is killed between the writes goes on with the versions that it had, and at
/// the root's end the values are gone for agents and kept for people. A branch from before the end has them.
#[tokio::test(start_paused = true)]
async fn o4_values_survive_a_crash_and_end_with_the_root() {
    let stage = Stage::new(
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
    let look = settled(&tree).await;
    assert!(!tree.shared().await.unwrap().is_cleared());
    tree.answer(look.questions[0].question, "yes").await.unwrap();
    let look = settled(&tree).await;
    assert_eq!(look.end.unwrap().shown.text, "a version 2, 1 bytes, written by root:\n2");
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

/// A branch from before the root's end has the values of that moment and goes its own way. A rollback of an agent does
/// not undo what it wrote: the next version follows the last one.
#[tokio::test(start_paused = true)]
async fn a_branch_has_the_values_and_a_rollback_keeps_them() {
    let stage = Stage::new(
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
    let look = settled(&tree).await;
    let then = tree.checkpoint(root.clone(), None).await.unwrap();
    tree.answer(look.questions[0].question, "more").await.unwrap();
    let look = settled(&tree).await;
    assert_eq!(tree.shared().await.unwrap().find("a").unwrap().version, 2, "{look:?}");
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
/// and what is no JSON, too long, of another version or reserved is refused with the remedy.
#[tokio::test(start_paused = true)]
async fn a_person_writes_a_shared_value_that_an_agent_reads() {
    let stage = Stage::new(
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
    let look = settled(&tree).await;
    let write = |json: &str, expect_version: Option<u64>| WriteValue {
        name: "plan".parse().unwrap(),
        json: json.to_owned(),
        expect_version,
        tokens: None,
    };
    let refused = async |verb: WriteValue| tree.request(By::Person, verb).await.unwrap_err().to_string();
    assert!(refused(write("ash", None)).await.contains("not JSON: put a text into double quotes"));
    assert!(refused(write("1", Some(1))).await.contains("there is no value `plan` yet"));
    let long = json!("x".repeat(limit::TEXT_BYTES_MAX)).to_string();
    assert!(refused(write(&long, None)).await.contains("32770"), "{}", refused(write(&long, None)).await);
    let reserved = WriteValue { name: "pipeline.progress".parse().unwrap(), ..write("1", None) };
    assert!(refused(reserved).await.contains("pipeline.progress"));
    let by_agent = tree.request(By::Agent("root".parse().unwrap()), write("1", None)).await;
    assert!(by_agent.unwrap_err().to_string().contains("write_context"));
    let first = tree.request(By::Person, write(r#"{ "steps": ["a"] }"#, Some(0))).await.unwrap();
    let second = tree.request(By::Person, write(r#"["b"]"#, Some(1))).await.unwrap();
    assert_eq!((first.version, second.version), (1, 2));
    let answer = Answer { question: look.questions[0].question, answer: Body::text("yes") };
    tree.request(By::Person, answer).await.unwrap();
    tree.ended().await;
    insta::assert_snapshot!(results(&stage, "root")[1], @r#"
    plan version 2, 5 bytes, written by person:
    ["b"]
    "#);
    let verified = verify(stage.journal().as_ref(), tree.id(), None).await.unwrap();
    assert!(verified.decided);
}
