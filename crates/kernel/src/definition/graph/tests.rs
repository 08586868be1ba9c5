//! Graphs as people write them, and everything that can be wrong with one.

use serde_json::{Value, json};

use super::{Graph, GraphProblem, GraphSurroundings, InputSource, NodeKind, ProblemCode, SharedSurroundings};
use crate::primitives::limit;

fn parse(written: &Value) -> Result<Graph, Vec<GraphProblem>> {
    parse_with(written, &["docs"], limit::GRAPH_NODES_MODEL_MAX)
}

fn parse_with(written: &Value, given: &[&str], nodes_max: usize) -> Result<Graph, Vec<GraphProblem>> {
    let roles = ["researcher", "writer", "critic"];
    let around = GraphSurroundings {
        roles: &|role| roles.contains(&role.as_str()),
        role_names: roles.to_vec(),
        given: given.to_vec(),
        shared: None,
        nodes_max,
    };
    Graph::parse(written, &around)
}

fn step(id: &str, more: &Value) -> Value {
    let mut step = json!({ "id": id, "agent_id": "writer", "task_description": format!("Do {id}.") });
    step.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    step
}

fn sequence(steps: &[Value]) -> Value {
    json!({ "steps": steps })
}

/// The problems of a graph that is refused, as people read them.
fn problems(written: &Value) -> Vec<String> {
    parse(written).unwrap_err().iter().map(ToString::to_string).collect()
}

/// serde reads a list as the fields of a struct, in their order.
#[test]
fn a_list_is_no_budget() {
    for budget in [json!([]), json!([1]), json!({ "repeats": [] }), json!({ "repeats": [1, 2] })] {
        let found = problems(&sequence(&[step("a", &json!({ "budget": budget }))]));
        assert!(found[0].contains("invalid type: sequence, expected the keys of"), "{found:?}");
    }
}

/// A map that is itself a member of a race or vote: looking for its scopes once never ended.
#[test]
fn a_map_can_be_a_member_of_a_race_or_vote() {
    for group in ["race", "vote"] {
        let inner = json!([
            step("a", &json!({ "output_to": "a" })),
            step("b", &json!({ "input_from": ["a", "docs"] }))
        ]);
        let map = json!({ "map": inner, "over": "docs" });
        let other = step("other", &json!({}));
        let graph = |map: &Value| {
            sequence(&[
                json!({ group: [map, other], "output_to": "won" }),
                step("c", &json!({ "input_from": ["won"] })),
            ])
        };
        parse(&graph(&map)).unwrap_or_else(|problems| panic!("{problems:?}"));
        let mut unknown = map;
        unknown["map"][1]["input_from"] = json!(["nobody"]);
        assert_eq!(problems(&graph(&unknown)).len(), 1);
    }
}

#[test]
fn every_kind_of_node_is_read_and_survives_the_journal() {
    let graph = json!({
        "mode": "sequential",
        "on_partial_success": "continue",
        "max_parallel": 4,
        "budget": { "cost_usd": 1, "timeout": "5m" },
        "steps": [
            { "parallel": [
                step("torch", &json!({ "output_to": "torch", "retry": 2, "timeout": "30s" })),
                step("jax", &json!({ "output_to": "jax", "required": false, "budget": { "tokens": 1000 } })),
            ], "max_parallel": 1, "id": "fan" },
            { "map": [step("sum", &json!({ "task_description": "Sum {{ doc }}, the {{ index }}." }))],
              "over": "docs", "as": "doc", "output_to": "sums", "max_parallel": 3 },
            { "race": [step("fast", &json!({})), step("slow", &json!({}))], "output_to": "first" },
            { "vote": step("judge", &json!({ "output_schema": { "type": "object" } })),
              "voters": 3, "majority": "two_thirds", "by": "verdict", "on_tie": "first", "missing": "ignored",
              "output_to": "verdict" },
            { "loop": [
                step("draft", &json!({ "output_to": "text", "input_from": ["review?"] })),
                step("review", &json!({ "output_to": "review", "input_from": ["text"] })),
            ], "until": "{{ review == 'ok' }}", "max_rounds": 3, "on_max_rounds": "continue" },
            { "choose": { "yes": [step("go", &json!({ "output_to": "end" }))], "no": step("halt", &json!({ "output_to": "end" })) },
              "on": "verdict", "else": [step("shrug", &json!({ "output_to": "end" }))] },
            { "ask": "Ship {{ text }}?", "output_to": "approval", "timeout": "1h", "default": "no" },
            step("ship", &json!({ "input_from": ["end", "sums", "first"], "when": "approval == 'yes'",
                "undo": { "agent_id": "critic", "task_description": "Take back {{ shipped }}." }, "output_to": "shipped" })),
        ],
    });
    let graph = parse(&graph).unwrap();
    let words: Vec<&str> = graph.nodes().iter().map(super::GraphNode::as_str).collect();
    assert_eq!(words[..9], ["sequence", "parallel", "map", "race", "vote", "loop", "choose", "ask", "step"]);
    let text = serde_json::to_string(&graph).unwrap();
    assert_eq!(serde_json::from_str::<Graph>(&text).unwrap(), graph);
    // torch, fast, slow, three judges, draft and review; jax, the map and a guarded step are not certain, and one case.
    assert_eq!(graph.agents_min(), 1 + 2 + 3 + 2 + 1);
}

#[test]
fn ids_are_made_up_where_there_are_none() {
    let step = json!({ "agent_id": "writer", "task_description": "x" });
    let graph =
        parse(&sequence(&[step.clone(), json!({ "parallel": [step.clone()], "id": "writer-2" }), step]))
            .unwrap();
    let ids: Vec<&str> = graph.nodes().iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids, ["pipeline", "writer", "writer-2", "writer-3", "writer-4"]);
}

/// O11
#[test]
fn every_problem_is_found_at_once_with_its_place_and_a_suggestion() {
    let graph = json!({
        "modes": "sequential",
        "on_partial_success": "perhaps",
        "steps": [
            step("a", &json!({ "agent_id": "writr", "output_to": "x", "retry": 99 })),
            step("a", &json!({ "output_to": "x", "input_form": ["x"] })),
            { "parallel": [] },
            { "loop": [step("d", &json!({}))], "until": "ok ==" , "max_rounds": 0 },
            { "task_description": "x" },
            step("e", &json!({ "input_from": ["tx"], "task_description": "Use {{ y }}.", "required": "yes" })),
        ],
    });
    let found = problems(&graph).join("\n");
    for part in [
        "modes: unknown key `modes`: did you mean `mode`?",
        "bad `on_partial_success`",
        "steps[0].agent_id: unknown agent `writr`: did you mean `writer`?",
        "steps[0].retry: `retry` of 99 is out of bounds: write a whole number from 0 to 10",
        "steps[1].input_form: unknown key `input_form`: did you mean `input_from`?",
        "steps[1].id: the id `a` is taken by `steps[0]`: choose another id",
        "steps[1].output_to: `x` is the output of `a`, too: choose another name",
        "steps[2].parallel: `parallel` has no steps: write at least one",
        "steps[3].until: bad `until`",
        "steps[3].max_rounds: `max_rounds` of 0 is out of bounds",
        "steps[4]: neither a step nor a group",
        "steps[5].required: `required` cannot be text: write true or false",
        "steps[5].input_from: nothing writes `tx`",
        "steps[5].task_description: nothing writes `y`",
    ] {
        assert!(found.contains(part), "{part}\nis not in\n{found}");
    }
}

/// O11
#[test]
fn cycles_are_refused_in_sequences_and_among_parallel_steps() {
    let a = step("a", &json!({ "input_from": ["y"], "output_to": "x" }));
    let b = step("b", &json!({ "input_from": ["x"], "output_to": "y" }));
    let found = parse(&sequence(&[a.clone(), b.clone()])).unwrap_err();
    assert_eq!(found[0].code, ProblemCode::Cycle);
    let found = parse(&json!({ "mode": "parallel", "steps": [a, b] })).unwrap_err();
    assert_eq!(found[0].code, ProblemCode::Cycle);
    assert!(found[0].to_string().contains("`a`, `b` wait for each other's outputs"), "{}", found[0]);
    let own = step("a", &json!({ "input_from": ["x"], "output_to": "x" }));
    assert_eq!(parse(&sequence(&[own])).unwrap_err()[0].code, ProblemCode::MissingInput);
}

/// O5
#[test]
fn an_input_must_be_written_before_it_is_read() {
    let reader = step("r", &json!({ "input_from": ["x"] }));
    let writer = step("w", &json!({ "output_to": "x" }));
    assert_eq!(
        problems(&sequence(&[reader.clone(), writer.clone()])),
        ["steps[0].input_from: `x` comes from `w`, which runs later: move `w` up"]
    );
    parse(&sequence(&[writer.clone(), reader.clone()])).unwrap();
    let graph = parse(&json!({ "mode": "parallel", "steps": [reader, writer] })).unwrap();
    assert_eq!(graph.node(1).after, [2], "the reader runs after the writer");
}

#[test]
fn what_is_written_in_a_map_race_or_vote_stays_there() {
    let writer = || step("w", &json!({ "output_to": "x" }));
    let reader = || step("r", &json!({ "input_from": ["x"] }));
    for group in [
        json!({ "map": [writer()], "over": "docs" }),
        json!({ "race": [writer(), step("v", &json!({ "output_to": "x" }))] }),
        json!({ "vote": [writer(), step("v", &json!({}))] }),
    ] {
        let found = problems(&sequence(&[group, reader()]));
        assert!(found[0].contains("which cannot be seen from here"), "{found:?}");
    }
    parse(&sequence(&[json!({ "map": [writer(), reader()], "over": "docs" })])).unwrap();
    let item = step("r", &json!({ "input_from": ["item"], "task_description": "{{ item }} {{ index }}" }));
    parse(&sequence(&[json!({ "map": [item], "over": "docs" })])).unwrap();
}

#[test]
fn the_cases_of_a_choice_may_write_the_same_name() {
    let case = |id| step(id, &json!({ "output_to": "x" }));
    let choose = json!({ "choose": { "1": case("a"), "2": [case("b")] }, "on": "docs" });
    parse(&sequence(&[choose, step("r", &json!({ "input_from": ["x"] }))])).unwrap();
}

#[test]
fn a_loop_reads_its_last_round_only_if_it_can_do_without() {
    let graph = |input: &str| {
        let draft = step("draft", &json!({ "output_to": "text", "input_from": [input] }));
        let review = step("review", &json!({ "output_to": "review", "input_from": ["text"] }));
        sequence(&[
            json!({ "loop": [draft, review], "until": "review == 'ok' or round > 2", "max_rounds": 3 }),
        ])
    };
    parse(&graph("review?")).unwrap();
    let found = problems(&graph("review"));
    assert!(found[0].contains("cycle"), "{found:?}");
}

#[test]
fn a_graph_has_a_largest_size_and_depth() {
    let steps = |count: usize| {
        sequence(&(0..count).map(|at| step(&format!("s{at}"), &json!({}))).collect::<Vec<_>>())
    };
    parse(&steps(limit::GRAPH_NODES_MODEL_MAX - 1)).unwrap();
    let found = parse(&steps(limit::GRAPH_NODES_MODEL_MAX)).unwrap_err();
    assert_eq!(found.last().unwrap().code, ProblemCode::TooLarge);
    let nested = |depth: usize| {
        let inner = (0..depth).fold(step("s", &json!({})), |inner, _| json!({ "sequence": [inner] }));
        sequence(&[inner])
    };
    parse(&nested(limit::GRAPH_DEPTH_MAX)).unwrap();
    let found = parse(&nested(limit::GRAPH_DEPTH_MAX + 1)).unwrap_err();
    assert_eq!(found[0].code, ProblemCode::TooLarge);
}

#[test]
fn ten_thousand_problems_are_a_hundred_lines() {
    let steps: Vec<Value> =
        (0..10_000).map(|at| step(&format!("s{at}"), &json!({ "agent_id": "nobody" }))).collect();
    let found = parse_with(&sequence(&steps), &[], limit::GRAPH_NODES_MAX).unwrap_err();
    assert_eq!(found.len(), limit::GRAPH_PROBLEMS_MAX);
    assert!(found.last().unwrap().message.ends_with("(and 9900 more problems)"));
}

#[test]
fn a_journal_with_nodes_that_do_not_fit_together_is_refused() {
    let graph =
        parse(&sequence(&[step("a", &json!({})), json!({ "parallel": [step("b", &json!({}))] })])).unwrap();
    let whole = serde_json::to_value(&graph).unwrap();
    let broken = |change: fn(&mut Value)| {
        let mut graph = whole.clone();
        change(&mut graph["nodes"]);
        serde_json::from_value::<Graph>(graph).is_err()
    };
    assert!(broken(|nodes| nodes[0]["kind"]["sequence"]["members"]["count"] = json!(9)));
    assert!(broken(|nodes| nodes[0]["kind"]["sequence"]["members"]["first"] = json!(0)));
    assert!(broken(|nodes| nodes[2]["kind"]["parallel"]["members"]["first"] = json!(1)));
    assert!(broken(|nodes| nodes[1]["parent"] = json!(2)));
    assert!(broken(|nodes| nodes[1]["after"] = json!([3])));
    assert!(broken(|nodes| *nodes = json!([])));
    assert!(!broken(|_| {}));
    assert!(matches!(graph.node(0).kind, NodeKind::Sequence { .. }));
}

/// A graph in a tree that declares these shared values, where `plan` exists already.
fn shared_problems(input_from: &str, more: &Value) -> Vec<String> {
    let rules = json!({
        "plan": { "write": [] },
        "notes": {},
        "secret": { "read": ["critic"] },
        "closed": { "write": [] },
    });
    let access = serde_json::from_value(rules).unwrap();
    let writer = "writer".parse().unwrap();
    let shared = SharedSurroundings {
        access: &access,
        writers: vec![&writer],
        has_value: &|name| name.as_str() == "plan",
        help: "declare it",
    };
    let roles = ["writer", "critic"];
    let around = GraphSurroundings {
        roles: &|role| roles.contains(&role.as_str()),
        role_names: roles.to_vec(),
        given: vec!["docs"],
        shared: Some(shared),
        nodes_max: limit::GRAPH_NODES_MODEL_MAX,
    };
    let mut second = json!({ "input_from": [input_from] });
    second.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let steps = [step("a", &json!({ "output_to": "draft" })), step("b", &second)];
    match Graph::parse(&sequence(&steps), &around) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn shared_inputs_are_checked_before_anything_runs() {
    let none = json!({});
    for name in ["shared.plan", "shared.notes", "shared.notes?", "draft", "docs"] {
        assert_eq!(shared_problems(name, &none), Vec::<String>::new(), "{name}");
    }
    let found: Vec<String> = [
        "shared.nots",
        "shared.something-else",
        "shared.draft",
        "shared.secret",
        "shared.closed",
        "shared.pipeline.progress",
        "shared.",
    ]
    .iter()
    .flat_map(|name| shared_problems(name, &none))
    .collect();
    let at = "steps[1].input_from: ";
    assert_eq!(
        found,
        [
            format!("{at}unknown shared value `nots`: did you mean `shared.notes`?"),
            format!("{at}unknown shared value `something-else`: declare it"),
            format!("{at}`draft` is an output of this graph: write `draft`, without `shared.`"),
            format!(
                "{at}`writer` may not read the shared value `secret`: add it to `read` in the rule of that value"
            ),
            format!(
                "{at}no agent can write the shared value `closed`: give an agent that may write it the tool `write_context`"
            ),
            format!(
                "{at}`pipeline.progress` cannot be an input: it changes with every step; an agent reads it with `read_context`"
            ),
            format!(
                "{at}`` is not a valid value name: 1 to 64 characters of A-Z, a-z, 0-9 and `_.-`, the first a letter or `_`"
            ),
        ]
    );
    let found = shared_problems("draft", &json!({ "on_missing": "fail" }));
    assert!(found[0].contains("`on_missing` without a shared value to wait for"), "{found:?}");
    let found = shared_problems("draft", &json!({ "output_to": "shared.x" }));
    assert!(found[0].contains("`shared.x` would be a value that agents write"), "{found:?}");
    let found = shared_problems("shared.notes", &json!({ "on_missing": "later" }));
    assert!(found[0].contains("bad `on_missing`"), "{found:?}");
}

/// Before rules 8, `shared.plan` was a name like any other.
#[test]
fn without_shared_values_a_name_is_the_output_of_a_step() {
    let written = sequence(&[
        step("a", &json!({ "output_to": "shared.plan" })),
        step("b", &json!({ "input_from": ["shared.plan"] })),
    ]);
    let graph = parse(&written).unwrap();
    let inputs: Vec<_> = graph.steps().flat_map(|(_, _, step)| &step.inputs).collect();
    assert_eq!(inputs[0].source, InputSource::Output);
}
