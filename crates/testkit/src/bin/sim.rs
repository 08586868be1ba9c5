//! `make sim SEED=… STEPS=…`: runs the simulator of decisions, then the one over the real runtime, and prints coverage,
//! or the law that was broken.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for people")]

use std::process::ExitCode;

use spinney_testkit::sim;
use spinney_testkit::sim::whole::{self, CaseStore};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (mut seed, mut steps) = (1, 1_000_000);
    for pair in words.chunks(2) {
        match (pair.first().map(String::as_str), pair.get(1).and_then(|number| number.parse().ok())) {
            (Some("--seed"), Some(number)) => seed = number,
            (Some("--steps"), Some(number)) => steps = number,
            _ => {
                eprintln!("sim: expected `--seed NUMBER` and `--steps NUMBER`, got {}", pair.join(" "));
                return ExitCode::from(2);
            }
        }
    }
    match decisions(seed, steps).and_then(|()| whole_trees(seed, steps)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(broken) => {
            eprintln!("sim: {broken}");
            ExitCode::FAILURE
        }
    }
}

fn decisions(seed: u64, steps: u64) -> Result<(), String> {
    let tally = sim::run(seed, steps).map_err(|broken| broken.to_string())?;
    println!(
        "decisions: {} trees, {} operations ({} refused), {} events, {} crashes, {} halts, {} waits for budget, {} rollbacks, {} branches, {} cuts with images: every law held",
        tally.cases,
        tally.operations,
        tally.refused,
        tally.events,
        tally.crashes,
        tally.halts,
        tally.waits,
        tally.rollbacks,
        tally.branches,
        tally.blanks
    );
    Ok(())
}

/// A batch of a whole tree takes as long as dozens of decisions, and SQLite is slower still.
fn whole_trees(seed: u64, steps: u64) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("spinney-sim-{}", std::process::id()));
    for (name, place, batches) in [
        ("memory", CaseStore::Memory, steps / 20),
        ("sqlite", CaseStore::Sqlite(folder.clone()), steps / 400),
    ] {
        let ran = whole::run(seed, batches, &place);
        if place != CaseStore::Memory {
            // It may be gone already.
            let _ = std::fs::remove_dir_all(&folder);
        }
        let tally = ran.map_err(|broken| broken.to_string())?;
        println!(
            "whole trees, {name}: {} trees in {} cases, {} crashes, each resumed by the next process ({} of them at every position in turn), {} results compared and equal, {} batches, {} events, {} agents, {} model and {} tool calls, {} graphs with {} steps and groups: every law held",
            tally.trees,
            tally.cases,
            tally.crashes,
            tally.positions,
            tally.equal,
            tally.batches,
            tally.events,
            tally.agents,
            tally.models,
            tally.tools,
            tally.policy.graphs.iter().sum::<u64>(),
            tally.policy.nodes
        );
    }
    Ok(())
}
