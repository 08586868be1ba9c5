//! The worst case of random files with pipelines against runs of them.

use std::fmt::Write as _;
use std::sync::Arc;

use spinney::prelude::*;
use spinney::tree_file::WorstCase;
use spinney_kernel::budget::Resource;
use spinney_kernel::primitives::Time;
use spinney_testkit::settled;

use crate::tree_file_check::{draw, pick, random_model};

/// A tree file with a random pipeline, as flow YAML.
fn random_file(seed: &mut u64) -> String {
    let mut steps = String::new();
    for _ in 0..=draw(seed, 3) {
        let node = node(seed, 2);
        writeln!(steps, "    - {node}").unwrap();
    }
    let price = pick(seed, &["0.25", "0.000001", "3.3333333"]);
    let cap = pick(seed, &["50", "300", "1500"]);
    let own = pick(seed, &["", ", budget: { cost_usd: 0.002 }", ", budget: { tokens: 900 }"]);
    let all = pick(seed, &["", "", "  budget: { cost_usd: 0.05 }\n", "  budget: { steps: 9 }\n"]);
    let budget = pick(seed, &["", "cost_usd: 0.02", "tokens: 9000"]);
    let policy = pick(seed, &["fail", "continue", "best_effort"]);
    format!(
        "name: t\ngoal: Go.\nbudget: {{ {budget} }}\nlimits: {{ depth: 2, agents: 80 }}\n\
         inputs: {{ docs: {{ type: json, default: [ash, oak] }} }}\nmodels:\n  \
         a: {{ provider: scripted, script: s.yaml, price: {{ input_per_mtok_usd: {price}, output_per_mtok_usd: 1.25 }} }}\nagents:\n  \
         helper: {{ model: a, limits: {{ max_steps: 2, max_tokens_per_step: {cap} }}{own} }}\n  \
         other: {{ model: a, tools: [spawn_agent], limits: {{ max_steps: 2, max_tokens_per_step: {cap} }}, budget: {{ cost_usd: 0.003, tokens: 4000 }} }}\n\
         pipeline:\n  on_partial_success: {policy}\n{all}  steps:\n{steps}"
    )
}

fn node(seed: &mut u64, depth: u64) -> String {
    let inner = |seed: &mut u64| node(seed, depth - 1);
    let budget = pick(seed, &["", "", ", budget: { cost_usd: 0.001 }", ", budget: { tokens: 1200 }"]);
    let retry = pick(seed, &["", ", retry: 1", ", retry: 2"]);
    let kind = if depth == 0 { 0 } else { draw(seed, 9) };
    match kind {
        1 => format!("{{ sequence: [{}, {}]{budget}{retry} }}", inner(seed), inner(seed)),
        2 => format!("{{ parallel: [{}, {}]{budget} }}", inner(seed), inner(seed)),
        3 => format!("{{ map: [{}], over: docs{budget} }}", inner(seed)),
        4 => format!("{{ race: [{}, {}]{retry} }}", inner(seed), inner(seed)),
        5 => format!("{{ vote: [{}], voters: 3, majority: most, on_tie: first{budget} }}", inner(seed)),
        6 => format!("{{ loop: [{}], until: round == 2, max_rounds: 3 }}", inner(seed)),
        7 => format!("{{ choose: {{ ash: [{}], oak: [{}] }}, on: 'docs[0]' }}", inner(seed), inner(seed)),
        _ => {
            let role = pick(seed, &["helper", "other"]);
            let undo = pick(seed, &["", "", ", undo: Take it back."]);
            let required = pick(seed, &["", ", required: false"]);
            format!("{{ agent_id: {role}, task_description: Do it.{undo}{required}{budget}{retry} }}")
        }
    }
}

/// G18 (cost of pipelines): over 1,000 random files with pipelines, no run spends more than the worst case that was
/// computed before it, neither by ceilings nor by the sum of its steps.
#[tokio::test(start_paused = true)]
async fn g18_the_worst_case_of_a_pipeline_is_never_below_what_a_run_spent() {
    let (mut bounded, mut by_steps) = (0, 0);
    for case in 0..1_000_u64 {
        let mut seed = case.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(77);
        let text = random_file(&mut seed);
        let file = TreeFile::parse("tree.yaml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let file = file.with_inputs(&[], &|_| None).unwrap();
        let worst = WorstCase::new(&file.definition, Time(0));
        let drivers = Drivers::new().with_model("a".parse().unwrap(), Arc::new(random_model(case)));
        let home = Home::open(Arc::new(MemoryJournal::new()), drivers);
        let tree = home.start(file.definition).await.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let snapshot = settled(&tree).await;
        let spent = snapshot.agents[0].spent;
        for (bound, resource) in [(&worst.cost, Resource::Cost), (&worst.tokens, Resource::Tokens)] {
            if let Some(most) = bound.most() {
                bounded += 1;
                assert!(spent.get(resource) <= most, "case {case}: {spent:?} is above {worst:?}\n{text}");
            }
        }
        let pipeline = worst.pipeline.as_ref().unwrap();
        if let Some(most) = pipeline.cost {
            by_steps += 1;
            assert!(
                spent.get(Resource::Cost) <= most,
                "case {case}: {spent:?} is above {most} of the steps\n{text}"
            );
        }
    }
    assert!(bounded > 500 && by_steps > 100, "{bounded} and {by_steps} bounds are too few to mean anything");
}
