//! Any bytes as the arguments of `run_pipeline`, by an agent of a tree that runs: it is refused with its problems or
//! started, and then its steps are answered. Nothing panics, a problem has a place and a remedy that fit on a line, and
//! deciding everything again gives the same events.

use serde_json::{Value, json};
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::definition::{Graph, GraphSurroundings, SharedAccess, SharedSurroundings};
use spinney_kernel::primitives::{Body, CallId, limit};
use spinney_kernel::record::{ToolAsk, Work};
use spinney_kernel::rules::decide;
use spinney_kernel::rules::report::{Done, Report, Timer};
use spinney_kernel::world::World;
use spinney_testkit::Scenario;

/// Most answers that are given: steps may ask for more and more.
const ANSWERS_MAX: usize = 40;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(args) = std::str::from_utf8(bytes) else { return };
    if let Ok(written) = serde_json::from_str::<Value>(args) {
        parsed(&written);
    }
    let mut play =
        Scenario::grow_as("root $90.00 turns=20 / worker later turns=3 / critic later turns=3", |tree| {
            tree.limits.agents_max = 64;
            tree.inputs.extend("list".parse().ok().map(|name| (name, json!(["ash", "oak", 3]))));
        });
    answer(&mut play, CallId(1), "Go.", vec![ask("run_pipeline", args)]);
    for turn in 0..ANSWERS_MAX {
        let Some(call) = running(&play) else { break };
        let says = ["ash", "[1, 2]", "{\"a\": null}", ""][turn % 4];
        answer(&mut play, call, says, Vec::new());
    }
    // Everything that still waits for a time ends.
    for _ in 0..ANSWERS_MAX {
        let Some(alarm) = play.world().alarms().min_by_key(|alarm| (alarm.at, alarm.timer)) else { break };
        play.pass(alarm.at.0.saturating_sub(play.now().0));
        play.report(Report::Timer(Timer { timer: alarm.timer }));
    }
    let mut again = World::new(play.world().tree());
    for batch in play.batches() {
        let decision = decide(&mut again, &batch.input).expect("a stored input is not refused");
        assert_eq!(decision.events, batch.events);
    }
    assert_eq!(&again, play.world());
}

/// What is parsed is written and read alike; what is not has problems that can be shown.
fn parsed(written: &Value) {
    let access = SharedAccess::default();
    let shared = SharedSurroundings {
        access: &access,
        writers: Vec::new(),
        has_value: &|name| name.as_str() == "plan",
        help: "",
    };
    let around = GraphSurroundings {
        roles: &|role| ["worker", "critic"].contains(&role.as_str()),
        role_names: vec!["worker", "critic"],
        given: vec!["list"],
        shared: Some(shared),
        nodes_max: limit::GRAPH_NODES_MODEL_MAX,
    };
    match Graph::parse(written, &around) {
        Ok(graph) => {
            let json = serde_json::to_string(&graph).expect("a graph is written");
            assert_eq!(serde_json::from_str::<Graph>(&json).expect("a written graph is read"), graph);
            assert!(graph.nodes().len() <= limit::GRAPH_NODES_MODEL_MAX);
            assert_eq!(Graph::parse(written, &around).as_ref(), Ok(&graph));
        }
        Err(problems) => {
            assert!(!problems.is_empty() && problems.len() <= limit::GRAPH_PROBLEMS_MAX);
            assert!(problems.iter().all(|problem| !problem.message.is_empty()));
        }
    }
}

fn ask(tool: &str, args: &str) -> ToolAsk {
    let (id, tool, args) = ("c0".to_owned(), tool.to_owned(), args.to_owned());
    ToolAsk { id, tool, args, tokens: None, told_tokens: None }
}

fn running(play: &Scenario) -> Option<CallId> {
    let mut calls = play.world().calls().all();
    calls.find(|(_, call)| call.is_running() && matches!(call.work, Work::Model(_))).map(|(id, _)| id)
}

fn answer(play: &mut Scenario, call: CallId, text: &str, asks: Vec<ToolAsk>) {
    let Some(attempt) = play.world().call(call).map(|call| call.attempt) else { return };
    let used = Used::Tokens(Usage { output: 1, ..Usage::default() });
    let done = Done { asks, ..Done::new(call, attempt, used, Body::text(text)) };
    play.report(Report::Done(done));
}
