//! Fan-out in memory: a root with a thousand children that make one model call each, until it has all results.

use std::sync::Arc;
use std::time::Instant;

use spinney_kernel::primitives::Durability;
use spinney_store::MemoryJournal;

use crate::measure::{at_least, row, time};
use crate::peer::{self, Script};
use crate::tree::{self, Plan};
use crate::{LANGGRAPH_PACKAGES, OPENAI_PACKAGES};

const CHILDREN: u32 = 1_000;
const ROUNDS: usize = 25;

/// Each peer by name, and how many times faster we must be.
const OTHERS: [(&str, Script, f64); 2] = [
    (
        "LangGraph",
        Script { home: "langgraph", packages: LANGGRAPH_PACKAGES, path: "benches/trees/langgraph_fan.py" },
        100.0,
    ),
    (
        "OpenAI Agents SDK",
        Script { home: "openai-agents", packages: OPENAI_PACKAGES, path: "benches/trees/openai_fan.py" },
        300.0,
    ),
];

/// Prints the table. Ours is measured again beside each peer, because conditions change.
pub(crate) fn run() {
    for (name, script, bound) in OTHERS {
        let before = per_child();
        let other = peer::measure(&script).map(|peer| peer.figure("child"));
        let ours = before.min(per_child());
        let (other, relation) = match other {
            Ok(other) => (format!("{} ({name})", time(other)), at_least(other / ours, bound)),
            Err(why) => (name.to_owned(), format!("not measured: {why}")),
        };
        row("a child of 1,000", &time(ours), &other, &relation);
    }
}

/// Nanoseconds per child, the minimum of many trees, like the peers' minimum of their rounds.
fn per_child() -> f64 {
    let runtime = tree::runtime();
    let one = |_| {
        let home = tree::home(Arc::new(MemoryJournal::new()), Plan::Children(CHILDREN));
        let start = Instant::now();
        let tree = runtime.block_on(tree::run(&home, Durability::Normal));
        let took = start.elapsed();
        let agents = runtime.block_on(tree.snapshot()).map_or(0, |snapshot| snapshot.agents.len());
        assert_eq!(agents, CHILDREN as usize + 1, "every child was born");
        took.as_nanos() as f64 / f64::from(CHILDREN)
    };
    (0..ROUNDS).map(one).fold(f64::INFINITY, f64::min)
}
