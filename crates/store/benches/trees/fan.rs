//! Fan-out in memory: a root with a thousand children that make one model call each, until it has all results.

use std::sync::Arc;
use std::time::Instant;

use spinney_kernel::port::journal::Durability;
use spinney_store::MemoryJournal;

use crate::LANGGRAPH_PACKAGES;
use crate::measure::{at_least, row, time};
use crate::peer::{self, Script};
use crate::tree::{self, Plan};

const CHILDREN: u32 = 1_000;
const ROUNDS: usize = 25;

const LANGGRAPH: Script =
    Script { home: "langgraph", packages: LANGGRAPH_PACKAGES, path: "benches/trees/langgraph_fan.py" };

/// Prints the table.
pub(crate) fn run() {
    let ours = per_child();
    let (other, relation) = match peer::measure(&LANGGRAPH).map(|peer| peer.figure("child")) {
        Ok(other) => (format!("{} (LangGraph)", time(other)), at_least(other / ours, 100.0)),
        Err(why) => ("LangGraph".to_owned(), format!("not measured: {why}")),
    };
    row("a child of 1,000", &time(ours), &other, &relation);
}

/// Nanoseconds per child, the least of many trees, as the other's is the least of its rounds.
fn per_child() -> f64 {
    let runtime = tree::runtime();
    let one = |_| {
        let home = tree::home(Arc::new(MemoryJournal::new()), Plan::Children(CHILDREN));
        let start = Instant::now();
        runtime.block_on(tree::run(&home, Durability::Normal));
        start.elapsed().as_nanos() as f64 / f64::from(CHILDREN)
    };
    (0..ROUNDS).map(one).fold(f64::INFINITY, f64::min)
}
