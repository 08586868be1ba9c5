//! What a driver learns with each call: which call of the tree it is, what its agent may touch, and where its folder is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use spinney::function_tool::RawCall;
use spinney::{Drivers, FunctionTool, Home, TreeFile};
use spinney_kernel::definition::{Definition, Network};
use spinney_kernel::port::OpenConnection;
use spinney_kernel::port::tool::ToolAttempt;
use spinney_kernel::primitives::{CallId, ConnectionEnd, ConnectionRefusal, limit};
use spinney_kernel::record::Event;
use spinney_store::MemoryJournal;
use spinney_testkit::scripted::Script;
use spinney_testkit::{Recorder, recorded};

const SCRIPT: &str = "
rules:
- { when: { agent: lead, turn: 1 }, call: [{ tool: note, args: {} }, { tool: spawn_agent, args: { agent: helper, goal: Help. } }] }
- { when: { agent: helper, turn: 1 }, call: [{ tool: note, args: {} }] }
- say: done
";

const FILE: &str = "
name: attempts
goal: Go.
models: { m: { provider: scripted, script: none } }
agents:
  lead: { model: m, tools: [note, spawn_agent] }
  helper: { model: m, tools: [note] }
entry: lead
";

/// The file with network for its lead, which no key grants yet.
fn definition() -> Definition {
    let mut definition = TreeFile::parse("tree.yaml", FILE).unwrap().definition;
    definition.roles.get_mut("lead").unwrap().caps.network = Network::Any;
    definition
}

#[tokio::test(start_paused = true)]
async fn an_attempt_brings_its_call_the_rights_of_its_agent_and_the_agents_folder() {
    let script = Script::parse("s.yaml", SCRIPT).unwrap();
    let model = Arc::new(Recorder::new(script.model()));
    let notes: Arc<Mutex<Vec<ToolAttempt>>> = Arc::default();
    let kept = Arc::clone(&notes);
    let note = FunctionTool::sync(move |RawCall(attempt)| {
        kept.lock().unwrap().push(attempt);
        Ok::<_, String>("noted")
    });
    let drivers = Drivers::new()
        .with_model("m".parse().unwrap(), Arc::clone(&model) as _)
        .with_tool("note".parse().unwrap(), Arc::new(note))
        .with_workspaces("/trees");
    let home = Home::open(Arc::new(MemoryJournal::new()), drivers);
    let tree = home.start(definition()).await.unwrap();
    tree.ended().await;

    let started = recorded(&tree).await.into_iter().filter_map(|recorded| match recorded.event {
        Event::CallStarted { call, .. } => Some(call),
        _ => None,
    });
    let started: BTreeSet<CallId> = started.collect();
    let place = |agent: &str| Path::new("/trees").join(tree.id().to_string()).join(agent);
    let mut seen: Vec<(String, Network, PathBuf)> = Vec::new();
    for attempt in notes.lock().unwrap().iter() {
        assert!(started.contains(&attempt.call), "{}", attempt.call);
        assert!(attempt.rights.folders.is_empty());
        let folder = attempt.workspace.as_ref().unwrap().path();
        seen.push((attempt.origin.role.to_string(), attempt.rights.network.clone(), folder));
    }
    let helper = notes.lock().unwrap()[1].origin.agent().to_string();
    assert_eq!(
        seen,
        [
            ("lead".to_owned(), Network::Any, place("lead")),
            ("helper".to_owned(), Network::Denied, place(&helper)),
        ]
    );
    let calls: BTreeSet<CallId> = model.attempts().iter().map(|attempt| attempt.call).collect();
    assert!(calls.is_subset(&started) && calls.len() == model.attempts().len(), "{calls:?}");
    assert!(model.attempts().iter().all(|attempt| attempt.workspace.is_some()));
}

/// A tool reports its connections while it runs; the journal has them before the end of the call, and those that come
/// later are dropped.
#[tokio::test(start_paused = true)]
async fn connections_are_in_the_journal_before_their_call_ends() {
    let late: Arc<Mutex<Vec<OpenConnection>>> = Arc::default();
    let kept = Arc::clone(&late);
    let note = FunctionTool::sync(move |RawCall(attempt)| {
        let log = &attempt.connections;
        log.refused("a.example.org", 22, ConnectionRefusal::NotGranted);
        for port in 0..=limit::CALL_CONNECTIONS_MAX {
            let open = log.open("b.example.org", port);
            open.sent(1);
            open.end(ConnectionEnd::Closed);
        }
        kept.lock().unwrap().push(log.open("c.example.org", 443));
        Ok::<_, String>("noted")
    });
    let script = "rules: [{ when: { turn: 1 }, call: [{ tool: note, args: {} }] }, { say: done }]";
    let model = Script::parse("s.yaml", script).unwrap().model();
    let drivers = Drivers::new()
        .with_model("m".parse().unwrap(), Arc::new(model))
        .with_tool("note".parse().unwrap(), Arc::new(note));
    let home = Home::open(Arc::new(MemoryJournal::new()), drivers);
    let tree = home.start(definition()).await.unwrap();
    tree.ended().await;
    late.lock().unwrap().clear();

    let mut seen = Vec::new();
    let mut ports = 0;
    for recorded in recorded(&tree).await {
        match recorded.event {
            Event::ConnectionEnded { connection, .. } if connection.host == "b.example.org" => ports += 1,
            Event::ConnectionEnded { connection, .. } => seen.push(connection.to_string()),
            Event::ConnectionsOmitted { totals, .. } => seen.push(format!("{} more", totals.count)),
            Event::CallEnded { call, .. } => seen.push(format!("{call} ended")),
            _ => {}
        }
    }
    assert_eq!(ports, limit::CALL_CONNECTIONS_MAX - 1);
    assert_eq!(seen, ["#1 ended", "a.example.org:22 refused: not granted", "2 more", "#2 ended", "#3 ended"]);
}
