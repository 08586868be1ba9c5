//! Thirty-two sub-agents in parallel on one dollar. Each would spend ninety cents.
//!
//! `cargo run --release -p spinney --example storm`
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::sync::Barrier;
use std::thread;

use spinney::budget::{Budget, Limits, Resource, RunError, spend, usd};

const CHILDREN: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Budget::root(Limits::usd("1.00")?)?;
    let start = Barrier::new(CHILDREN);
    let asked = spend::usd("0.90")?;

    let answers: Vec<Result<(), String>> = thread::scope(|scope| {
        let children: Vec<_> = (0..CHILDREN)
            .map(|_| {
                scope.spawn(|| -> Result<(), String> {
                    let child = root.child(Limits::usd("0.90").map_err(text)?).map_err(text)?;
                    start.wait();
                    let answer: Result<(), RunError<String>> = child.run_blocking(asked, |_call| Ok(()));
                    answer.map_err(text)
                })
            })
            .collect();
        children.into_iter().filter_map(|child| child.join().ok()).collect()
    });

    let refused: Vec<&String> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    println!("{CHILDREN} children asked for $0.90 each, at once, of $1.00");
    println!("ran:     {}", CHILDREN - refused.len());
    println!("refused: {}", refused.len());
    println!("spent:   {}", usd(root.snapshot().spent.get(Resource::Cost)));
    if let Some(reason) = refused.first() {
        println!("\nwhat each of the others was told:\n{reason}");
    }
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
