//! Random graphs whose steps read and write names by chance: what is accepted runs without a missing input in every
//! order in which its steps may end, and what is refused says where.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::definition::{Graph, GraphProblem, GraphSurroundings, PathStep, ProblemCode};
use spinney_kernel::primitives::{Body, CallId, RoleName, limit};
use spinney_kernel::record::{Event, Exit, NodeEnd, StopReason, Work};
use spinney_kernel::rules::report::{Done, Report};
use spinney_testkit::Scenario;

/// Names that steps read and write.
const NAMES: [&str; 5] = ["a", "b", "c", "list", "nobody"];

/// A step. In a loop, an expression may read what only the round before has written, so it says what it is without.
fn step() -> impl Strategy<Value = Value> {
    let name = || proptest::sample::select(&NAMES[..3]);
    let read = (proptest::sample::select(&NAMES[..]), any::<bool>())
        .prop_map(|(name, optional)| format!("{name}{}", if optional { "?" } else { "" }));
    let reads = proptest::collection::vec(read, 0..3);
    (proptest::option::weighted(0.6, name()), reads, proptest::option::weighted(0.2, name())).prop_map(
        |(output, mut reads, shown)| {
            reads.sort_by_key(|read| read.trim_end_matches('?').to_owned());
            reads.dedup_by_key(|read| read.trim_end_matches('?').to_owned());
            let task =
                shown.map_or("Do it.".to_owned(), |name| format!("Do {{{{ {name} | default('it') }}}}."));
            let mut step = json!({ "agent_id": "worker", "task_description": task });
            if let Some(output) = output {
                step["output_to"] = json!(output);
            }
            if !reads.is_empty() {
                step["input_from"] = json!(reads);
            }
            step
        },
    )
}

fn node() -> impl Strategy<Value = Value> {
    step().prop_recursive(2, 6, 3, |inner| {
        let members = proptest::collection::vec(inner, 1..3);
        let output = proptest::option::weighted(0.4, proptest::sample::select(&NAMES[..3]));
        (0..6_usize, members, output).prop_map(|(kind, members, output)| {
            let mut group = match kind {
                0 => json!({ "sequence": members }),
                1 | 2 => json!({ "parallel": members }),
                3 => json!({ "map": members, "over": "list" }),
                4 => json!({ "race": members }),
                _ => json!({ "loop": members, "until": "round == 2", "max_rounds": 2 }),
            };
            if let Some(output) = output.filter(|_| !(1..3).contains(&kind)) {
                group["output_to"] = json!(output);
            }
            group
        })
    })
}

fn graph() -> impl Strategy<Value = Value> {
    (proptest::collection::vec(node(), 1..4), proptest::sample::select(&["sequential", "parallel"][..]))
        .prop_map(|(steps, mode)| json!({ "mode": mode, "steps": steps }))
}

fn parse(written: &Value) -> Result<Graph, Vec<GraphProblem>> {
    let around = GraphSurroundings {
        roles: &|role| role.as_str() == "worker",
        role_names: vec!["worker"],
        given: vec!["list"],
        shared: None,
        nodes_max: limit::GRAPH_NODES_MODEL_MAX,
    };
    Graph::parse(written, &around)
}

/// Runs a graph whose every step succeeds. `order` chooses which running step ends next.
fn run(graph: Graph, mut order: u64) -> Scenario {
    let agents = graph.agents_min() as u32;
    let mut play = Scenario::grow_as("root $90.00 turns=20 / worker later turns=3", |tree| {
        tree.limits.agents_max = agents.saturating_mul(4).max(400);
        tree.inputs.insert("list".parse().unwrap(), json!(["ash", "oak"]));
        tree.entry = RoleName::of_graphs();
        tree.graph = Some(Arc::new(graph));
    });
    for _ in 0..1_000 {
        let running: Vec<CallId> = {
            let calls = play.world().calls().all();
            calls
                .filter(|(_, call)| call.is_running() && matches!(call.work, Work::Model(_)))
                .map(|(id, _)| id)
                .collect()
        };
        if running.is_empty() {
            break;
        }
        order = order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let call = running[(order >> 33) as usize % running.len()];
        let attempt = play.world().call(call).unwrap().attempt;
        let used = Used::Tokens(Usage { output: 1, ..Usage::default() });
        let (body, stop) = (Body::text(format!("said {call}")), StopReason::End);
        play.report(Report::Done(Done {
            call,
            attempt,
            used,
            body,
            asks: Vec::new(),
            refused: Vec::new(),
            is_error: false,
            mismatch: None,
            stop,
            files: Vec::new(),
            removed: Vec::new(),
            exit: None,
        }));
    }
    play
}

/// The value at a path, or what is nearest above it.
fn at<'v>(written: &'v Value, path: &[PathStep]) -> Option<&'v Value> {
    path.iter().try_fold(written, |value, step| match step {
        PathStep::Key(key) => value.get(key),
        PathStep::Item(item) => value.get(item),
    })
}

/// O5: what would have the value of a parallel group has none, so nothing can read it.
#[test]
fn the_output_of_a_group_that_ends_with_a_parallel_one_is_refused() {
    let step = || json!({ "agent_id": "worker", "task_description": "Do it." });
    let parallel = || json!({ "parallel": [step(), step()] });
    for group in [
        json!({ "race": [parallel()], "output_to": "c" }),
        json!({ "race": [step(), parallel()], "output_to": "c" }),
        json!({ "sequence": [step(), parallel()], "output_to": "c" }),
        json!({ "sequence": [{ "sequence": [parallel()] }], "output_to": "c" }),
        json!({ "loop": [parallel()], "until": "round == 2", "max_rounds": 2, "output_to": "c" }),
    ] {
        let written = json!({ "mode": "sequential", "steps": [group] });
        let problems = parse(&written).err().unwrap_or_default();
        let codes: Vec<ProblemCode> = problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, [ProblemCode::BadValue], "{written}");
    }
    let ends = json!({ "sequence": [parallel(), step()], "output_to": "c" });
    assert!(parse(&json!({ "mode": "sequential", "steps": [ends] })).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// O5, O11: an accepted graph whose steps all succeed completes in whatever order they end, and no step lacks an
    /// input.
    #[test]
    fn an_accepted_graph_never_lacks_an_input(written in graph(), order in any::<u64>()) {
        match parse(&written) {
            Ok(graph) => {
                let play = run(graph, order);
                let events = || play.batches().iter().flat_map(|batch| &batch.events);
                for event in events() {
                    if let Event::NodeEnded { name, end: end @ (NodeEnd::Failed { .. } | NodeEnd::Skipped { .. }), .. } = event {
                        prop_assert!(false, "{} ended as {:?}\n{}", name, end, written);
                    }
                }
                let is_end = |event: &Event| matches!(event, Event::AgentEnded { exit: Exit::Completed, agent, .. } if agent.as_str() == "pipeline");
                prop_assert!(events().any(is_end), "it did not complete: {}\n{}", written, play.tree());
            }
            Err(problems) => {
                for problem in problems {
                    prop_assert!(at(&written, &problem.path).is_some(), "{:?} is not in {}", problem.path, written);
                    prop_assert!(!problem.help.is_empty(), "{} has no remedy", problem);
                }
            }
        }
    }

    /// A graph that reads nothing is refused only for names that are written twice.
    #[test]
    fn a_graph_without_inputs_is_refused_only_for_its_outputs(written in graph()) {
        fn strip(value: &mut Value) {
            match value {
                Value::Object(keys) => {
                    keys.remove("input_from");
                    if keys.contains_key("task_description") {
                        keys.insert("task_description".to_owned(), json!("Do it."));
                    }
                    keys.values_mut().for_each(strip);
                }
                Value::Array(items) => items.iter_mut().for_each(strip),
                _ => {}
            }
        }
        let mut written = written;
        strip(&mut written);
        let problems = parse(&written).err().unwrap_or_default();
        let is_output = |problem: &GraphProblem| matches!(problem.code, ProblemCode::DuplicateOutput | ProblemCode::BadValue);
        prop_assert!(problems.iter().all(is_output), "{:?}", problems);
    }
}
