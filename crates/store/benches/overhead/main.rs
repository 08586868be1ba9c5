//! `make bench`: the cost of a turn in instructions, ours compared with rig's loop. Instructions do not depend on other
//! load: the same build gives the same count within about a thousandth. valgrind counts them, in a separate process for
//! every count; start and end are the same for any number of turns and cancel out in the
//! difference of two counts. `docs/bench.md` has the figures.
//!
//! Both are built alike and use the system's allocator and one thread. `overhead turns 100` is the process that is
//! counted: one agent that calls a tool in each of 100 turns, then answers.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]

mod count;
#[path = "../../../testkit/benches/bench/measure.rs"]
#[expect(dead_code, reason = "one set of tables for all benches; not each uses all")]
mod measure;
#[path = "../../../testkit/benches/bench/peer.rs"]
#[expect(dead_code, reason = "of the others only how a command is run")]
mod peer;
#[path = "../trees/tree.rs"]
#[expect(dead_code, reason = "one set of trees for all benches; not each uses all")]
mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::primitives::Durability;
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use spinney_store::MemoryJournal;
use tokio::runtime::Builder;

use crate::measure::{at_most, row};
use crate::tree::Plan;

/// The numbers of turns whose difference is measured. The first span has little to send to the model, the second has the
/// texts of fifty turns.
const SPANS: [(u32, u32); 2] = [(1, 11), (50, 100)];

/// The peers by name, and their programs in `bench/rig`.
const OTHERS: [(&str, &str); 2] = [("rig 0.44", "rig-0-44"), ("rig 0.40", "rig-0-40")];
/// A ceiling that no tree here comes near.
const FAR: u64 = 1_000_000_000_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only checks that it starts.
    if words.iter().any(|word| word == "--test") {
        return;
    }
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["turns", turns, ..] => grow(turns.parse().unwrap_or_else(|error| panic!("{turns}: {error}"))),
        _ => compare(),
    }
}

/// Prints the table.
fn compare() {
    measure::title("a turn, in instructions");
    let built = count::rig();
    for (few, many) in SPANS {
        let what = format!("a turn, {}-{many}", few + 1);
        let ours = match own_path().and_then(|path| per_turn(&path, &["turns"], few, many)) {
            Ok(ours) => ours,
            Err(why) => return println!("not measured: {why}"),
        };
        for (name, program) in OTHERS {
            let folder = built.as_ref().map_err(String::clone);
            let (other, relation) = match folder.and_then(|it| per_turn(&it.join(program), &[], few, many)) {
                Ok(other) => (format!("{} ({name})", thousands(other)), at_most(ours / other, 3.0)),
                Err(why) => (name.to_owned(), format!("not measured: {why}")),
            };
            row(&what, &thousands(ours), &other, &relation);
        }
    }
}

/// This program, which is also counted.
fn own_path() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| error.to_string())
}

/// Instructions of one turn, of those after the first few.
fn per_turn(program: &Path, words: &[&str], few: u32, many: u32) -> Result<f64, String> {
    let least = count::instructions(program, words, few)?;
    let most = count::instructions(program, words, many)?;
    Ok((most - least) / f64::from(many - few))
}

/// `123 k`.
fn thousands(instructions: f64) -> String {
    format!("{:.1} k", instructions / 1_000.0)
}

/// Starts the tree that is counted. Every resource has a distant ceiling, so each is checked.
fn grow(turns: u32) {
    let mut definition = tree::roomy(Durability::Normal);
    let resources =
        [Resource::Cost, Resource::Tokens, Resource::Steps, Resource::ToolCalls, Resource::Retries];
    definition.budget.limit =
        resources.into_iter().fold(Ceilings::NONE, |limit, resource| limit.with(resource, FAR));
    let runtime = match Builder::new_current_thread().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime: {error}"),
    };
    runtime.block_on(async {
        let home = tree::home(Arc::new(MemoryJournal::new()), Plan::Turns(turns));
        let tree = home.start(definition).await.unwrap_or_else(|error| panic!("{error}"));
        let status = tree.ended().await;
        assert_eq!(status.state, TreeState::Ended(ExitKind::Completed), "{status:?}");
    });
}
