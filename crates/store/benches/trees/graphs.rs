//! Graphs in memory: pipelines of steps whose agents answer at once, compared with LangGraph's graphs of the same
//! shape; and checking a written graph.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use spinney_kernel::definition::{Definition, Graph, GraphSurroundings};
use spinney_kernel::primitives::limit;
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use spinney_store::MemoryJournal;
use spinney_testkit::spinney::tree_file::TreeFile;

use crate::LANGGRAPH_PACKAGES;
use crate::measure::{at_least, at_most, least_of_both, row, time};
use crate::peer::{self, Script};
use crate::tree::{self, Plan};

const ROUNDS: usize = 5;
/// LangGraph must be at least this many times slower.
const FASTER: f64 = 30.0;
/// What a step of a long pipeline may cost, compared with a step of a short one.
const FLAT: f64 = 1.3;

const LANGGRAPH: Script =
    Script { home: "langgraph", packages: LANGGRAPH_PACKAGES, path: "benches/trees/langgraph_graphs.py" };

/// Prints the table.
pub(crate) fn run() {
    let langgraph = peer::measure(&LANGGRAPH);
    let shapes = [("one after the other", "sequential", "chain"), ("at the same time", "parallel", "fan")];
    for (what, mode, figure) in shapes {
        let (short, long) = (per_step(mode, 1_000), per_step(mode, 10_000));
        for (steps, ours) in [(1_000, short), (10_000, long)] {
            let (other, relation) = match &langgraph {
                Ok(peer) => {
                    let other = peer.figure(&format!("{figure}_{steps}"));
                    (format!("{} (LangGraph)", time(other)), at_least(other / ours, FASTER))
                }
                Err(why) => ("LangGraph".to_owned(), format!("not measured: {why}")),
            };
            row(&format!("a step of {steps}, {what}"), &time(ours), &other, &relation);
        }
        row("10,000 against 1,000", "", "", &at_most(long / short, FLAT));
    }
    let (parse, check) = parse_and_check(10_000);
    let relation = at_most(check / parse, 3.0);
    row("checking 10,000 steps", &time(check), &format!("{} (parsing the JSON)", time(parse)), &relation);
}

/// Steps that run one after the other write a value each, as long as there is room for more values.
fn pipeline(mode: &str, steps: usize) -> Value {
    let is_chain = mode == "sequential";
    let step = |number: usize| {
        let mut step = json!({
            "id": format!("s{number}"), "agent_id": "child", "task_description": "Do it."
        });
        if is_chain && number < limit::NAMES_MAX {
            step["output_to"] = json!(format!("v{number}"));
        }
        step
    };
    json!({ "mode": mode, "steps": (0..steps).map(step).collect::<Vec<_>>(), "max_parallel": 10_000 })
}

fn definition(mode: &str, steps: usize) -> Definition {
    let file = json!({
        "name": "graph", "goal": "Go.", "limits": { "agents": 100_000, "parallel": 100_000 },
        "models": { "m": { "provider": "scripted", "script": "none.yaml" } },
        "agents": { "child": { "model": "m" } },
        "pipeline": pipeline(mode, steps),
    });
    let parsed = TreeFile::parse("graph.json", &file.to_string());
    parsed.unwrap_or_else(|error| panic!("{error}")).definition
}

/// Nanoseconds per step, the minimum of some trees.
fn per_step(mode: &str, steps: usize) -> f64 {
    let (runtime, definition) = (tree::runtime(), definition(mode, steps));
    let one = |_| {
        let home = tree::home(Arc::new(MemoryJournal::new()), Plan::Turns(0));
        let definition = definition.clone();
        let start = Instant::now();
        let state = runtime.block_on(async {
            let tree = home.start(definition).await.unwrap_or_else(|error| panic!("{error}"));
            tree.ended().await.state
        });
        assert_eq!(state, TreeState::Ended(ExitKind::Completed));
        start.elapsed().as_nanos() as f64 / steps as f64
    };
    (0..ROUNDS).map(one).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds to parse the JSON of a graph, and to check what was parsed.
fn parse_and_check(steps: usize) -> (f64, f64) {
    let written = pipeline("sequential", steps);
    let text = written.to_string();
    let around = GraphSurroundings {
        roles: &|role| role.as_str() == "child",
        role_names: vec!["child"],
        given: Vec::new(),
        shared: None,
        nodes_max: limit::GRAPH_NODES_MAX,
    };
    least_of_both(
        1,
        || assert!(serde_json::from_str::<Value>(&text).is_ok()),
        || assert!(Graph::parse(&written, &around).is_ok()),
    )
}
