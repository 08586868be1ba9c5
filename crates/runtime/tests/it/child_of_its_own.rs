//! A child is its own agent: its model calls have its own settings, and its timeout ends only itself.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use spinney::bus::{Watch, WatchItem};
use spinney::function_tool::RawCall;
use spinney::tree_file::TreeFile;
use spinney::{FunctionTool, Tree};
use spinney_kernel::context::Message;
use spinney_kernel::definition::Definition;
use spinney_kernel::port::model::ModelAttempt;
use spinney_kernel::primitives::{Actor, AgentId, Body, Category, Envelope, Time};
use spinney_kernel::record::{Event, Exit};
use spinney_kernel::rules::request::Send;
use spinney_testkit::{TestHome, recorded, settled};
use tokio::sync::mpsc;

const TREE: &str = "
name: family
goal: Delegate.
models:
  m: { provider: scripted, script: s, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } }
  cheap: { provider: scripted, script: s, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } }
agents:
  parent: { model: m, prompt: You delegate., tools: [spawn_agent, hang, look] }
  child: { model: cheap, prompt: You look around., tools: [look, hang], limits: { timeout: 200ms } }
entry: parent
";

fn family() -> Definition {
    TreeFile::parse("tree.yaml", TREE).unwrap().definition
}

fn attempts_of(stage: &TestHome, role: &str) -> Vec<Arc<ModelAttempt>> {
    stage.model().attempts().into_iter().filter(|attempt| attempt.origin.role.as_str() == role).collect()
}

/// L17: a child's request has the child's model, system prompt and tools.
#[tokio::test(start_paused = true)]
async fn l17_the_request_of_a_child_has_its_own_model_prompt_and_tools() {
    let script = r#"
rules:
  - when: { agent: parent, turn: 1 }
    call: [{ tool: spawn_agent, args: { agent: child, goal: Find the door. } }]
  - say: done
tools: { look: { say: a door }, hang: { hang: true } }
"#;
    let stage = TestHome::new(script);
    let tree = stage.home().start(family()).await.unwrap();
    settled(&tree).await;
    let asked = |role| {
        let attempt = attempts_of(&stage, role).swap_remove(0);
        let Message::System(system) = attempt.packet.messages[0].as_ref() else { panic!("no system prompt") };
        let tools: Vec<String> = attempt.packet.tools.iter().map(|tool| tool.name.to_string()).collect();
        (attempt.model.to_string(), system.to_string(), tools)
    };
    let (model, system, tools) = asked("child");
    assert_eq!((model.as_str(), tools), ("cheap", vec!["hang".to_owned(), "look".to_owned()]));
    assert!(system.starts_with("You look around.") && system.contains("Find the door."), "{system}");
    let (model, system, tools) = asked("parent");
    assert_eq!(model, "m");
    assert!(system.starts_with("You delegate.") && !system.contains("look around."), "{system}");
    assert!(tools.contains(&"spawn_agent".to_owned()));
}

/// What a parent shares is background to its child: marked as that, and before the child's own task, which stands last
/// and is the only one that it reads as its own. Later packets begin in the same way.
#[tokio::test(start_paused = true)]
async fn a_briefed_child_reads_one_task_and_reads_it_last() {
    let script = r#"
rules:
  - when: { agent: parent, turn: 1 }
    call: [{ tool: ask_human, args: { question: "What should I know?" } }]
  - when: { agent: parent, turn: 2 }
    call: [{ tool: spawn_agent, args: { agent: child, goal: Find the door., share: briefing } }]
  - when: { agent: child, turn: 1 }
    call: [{ tool: look, args: {} }]
  - say: done
tools: { look: { say: a door }, hang: { hang: true } }
"#;
    let stage = TestHome::new(script);
    let text = TREE.replace("[spawn_agent, hang, look]", "[spawn_agent, ask_human, hang, look]");
    let tree = stage.home().start(TreeFile::parse("tree.yaml", &text).unwrap().definition).await.unwrap();
    let question = settled(&tree).await.questions[0].question;
    let envelope = Envelope { category: Category::Context, ..Envelope::default() };
    let fact = Send { envelope, ..Send::plain("parent".parse().unwrap(), Body::text("The house is red.")) };
    tree.request(Actor::PERSON, fact).await.unwrap();
    tree.answer(question, "that").await.unwrap();
    settled(&tree).await;
    let read: Vec<Vec<String>> = attempts_of(&stage, "child")
        .iter()
        .map(|attempt| attempt.packet.messages.iter().map(|message| message.text().into_owned()).collect())
        .collect();
    let [first, second] = read.as_slice() else { panic!("{read:?}") };
    let tasks = first.iter().filter(|text| text.contains("Your task:")).count();
    assert_eq!(
        (tasks, first.last().map(String::as_str)),
        (1, Some("Your task: Find the door.")),
        "{first:?}"
    );
    insta::assert_snapshot!(first[1..].join("\n---\n"), @"
    [background: what parent knows]
    You delegate.

    Its task: Delegate.
    ---
    [background: what parent knows]
    The house is red.
    ---
    Your task: Find the door.
    ");
    assert!(first[0].starts_with("You look around.") && !first[0].contains("door"), "{first:?}");
    assert_eq!(second[..first.len()], first[..], "the next packet begins with the same texts");
}

/// A process that a tool starts; it is killed with its call.
struct Process(Child);

impl Process {
    fn start() -> std::io::Result<Self> {
        let quiet = || (Stdio::null(), Stdio::null(), Stdio::null());
        let (input, output, errors) = quiet();
        Command::new("sleep").arg("600").stdin(input).stdout(output).stderr(errors).spawn().map(Self)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_alive(process: u32) -> bool {
    let asked = Command::new("kill").args(["-0", &process.to_string()]).stderr(Stdio::null()).status();
    asked.unwrap().success()
}

/// A tool that starts a process and never answers, and the process ids.
fn hanging() -> (FunctionTool, mpsc::Receiver<u32>) {
    let (started, processes) = mpsc::channel(1);
    let tool = FunctionTool::new(move |_: RawCall| {
        let started = started.clone();
        async move {
            let process = Process::start().map_err(|error| error.to_string())?;
            let _ = started.try_send(process.0.id());
            std::future::pending::<()>().await;
            drop(process);
            Ok::<_, String>("never")
        }
    });
    (tool, processes)
}

const HANGS: &str = r#"
rules:
  - when: { agent: parent, turn: 1 }
    call: [{ tool: spawn_agent, args: { agent: child, goal: Wait., id: c } }]
  - when: { agent: child }
    call: [{ tool: hang, args: {} }]
  - say: "{{ last }}"
tools: { look: { say: a door } }
"#;

fn spawned(event: &Event, id: &str) -> bool {
    matches!(event, Event::AgentSpawned(spawned) if spawned.agent.as_str() == id)
}

/// When the child was spawned, and when and how it ended.
async fn life(tree: &Tree, id: &str) -> (Time, Time, Exit) {
    let recorded = recorded(tree).await;
    let born = recorded.iter().find(|recorded| spawned(&recorded.event, id)).unwrap().at;
    let end = recorded.iter().find_map(|recorded| {
        let Event::AgentEnded { agent, exit, .. } = &recorded.event else { return None };
        (agent.as_str() == id).then(|| (recorded.at, exit.clone()))
    });
    let (ended, exit) = end.unwrap();
    (born, ended, exit)
}

/// L13: a child that times out while a tool hangs ends, its parent reads that within 400 ms, and the process that the
/// tool started is gone by then. Tested for a child of an agent, with its role's limit, and for one spawned from
/// outside with `timeout_ms`.
#[tokio::test(start_paused = true)]
async fn l13_a_child_whose_tool_hangs_ends_in_time_and_leaves_no_process() {
    let (tool, mut processes) = hanging();
    let stage = TestHome::new(HANGS).with_tool("hang", tool);
    let tree = stage.home().start(family()).await.unwrap();
    let process = processes.recv().await.unwrap();
    assert!(is_alive(process), "it runs while the tool hangs");
    let mut ends = tree.watch(Watch { kind: Some("agent_ended".to_owned()), ..Watch::default() });
    let Some(Ok(WatchItem::Event(first))) = ends.next().await else { panic!("an agent ends") };
    assert_eq!(first.context.agent.as_ref().map(|agent| agent.as_str()), Some("c"));
    assert!(!is_alive(process), "it is gone before anybody is told");
    tree.ended().await;
    let (born, ended, exit) = life(&tree, "c").await;
    assert!((200..=400).contains(&(ended.0 - born.0)), "{born:?} {ended:?}");
    let Exit::Failed { error } = &exit else { panic!("{exit:?}") };
    assert_eq!(error.code, "timeout");
    let parent = attempts_of(&stage, "parent");
    let Message::Result { text, .. } = parent[1].packet.messages.last().unwrap().as_ref() else {
        panic!("the parent reads a result")
    };
    assert_eq!(text, "c failed (timeout: it worked longer than its 200 ms of active time)");

    let (tool, mut processes) = hanging();
    let stage = TestHome::new(HANGS.replace("turn: 1", "turn: 9").as_str()).with_tool("hang", tool);
    let mut definition = family();
    for role in definition.roles.values_mut() {
        role.turns.iter_mut().for_each(|turns| turns.active_ms = None);
    }
    // It takes no turns of its own, so it stays available for requests.
    definition.roles.get_mut("parent").unwrap().turns = None;
    let tree = stage.home().start(definition).await.unwrap();
    let parent: AgentId = "parent".parse().unwrap();
    let spawn = serde_json::json!({
        "verb": "spawn", "parent": "parent", "role": "child", "goal": "Wait.", "id": "c",
        "budget": { "timeout_ms": 200 }, "collect": "detached",
    });
    let mut ends = tree.watch(Watch { kind: Some("agent_ended".to_owned()), ..Watch::default() });
    tree.request(
        Actor::Agent(parent.clone()),
        serde_json::from_value::<spinney_kernel::rules::Request>(spawn).unwrap(),
    )
    .await
    .unwrap();
    let process = processes.recv().await.unwrap();
    assert!(matches!(ends.next().await, Some(Ok(WatchItem::Event(_)))), "the child ends");
    assert!(!is_alive(process), "it is gone with the call");
    tree.cancel(parent, "enough").await.unwrap();
    let (born, ended, exit) = life(&tree, "c").await;
    assert!(matches!(&exit, Exit::Failed { error } if error.code == "timeout"), "{exit:?}");
    assert!((200..=400).contains(&(ended.0 - born.0)), "{born:?} {ended:?}");
}
