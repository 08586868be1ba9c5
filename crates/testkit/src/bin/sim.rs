//! `make sim SEED=… STEPS=…`: runs the simulator and prints what was tried, or the law that broke.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for people")]

use std::process::ExitCode;

use spinney_testkit::sim;

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
    match sim::run(seed, steps) {
        Ok(tally) => {
            println!(
                "{} trees, {} operations ({} refused), {} events, {} crashes, {} halts, {} waits for budget: every law held",
                tally.cases,
                tally.operations,
                tally.refused,
                tally.events,
                tally.crashes,
                tally.halts,
                tally.waits
            );
            ExitCode::SUCCESS
        }
        Err(broken) => {
            eprintln!("sim: {broken}");
            ExitCode::FAILURE
        }
    }
}
