//! `make bench`: whole trees on a journal, as ratios against references in the same run. Absolute times mean little on a
//! busy machine, so nothing here fails on a time; `docs/bench.md` has the figures.
//! `cargo bench -p spinney-store --bench trees -- fan` prints one table only.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]

mod agents;
#[path = "../../../testkit/benches/bench/alloc.rs"]
mod alloc;
mod bus;
mod cancel;
mod durable;
mod fan;
mod files;
mod graphs;
mod many;
#[path = "../../../testkit/benches/bench/measure.rs"]
#[expect(dead_code, reason = "one set of tables for all benches; not each uses all")]
mod measure;
#[path = "../../../testkit/benches/bench/peer.rs"]
mod peer;
mod polls;
mod raw;
mod replay;
mod tree;
mod turns;

/// Each table by name, with its heading. Those that count bytes or polls come last, because counting takes time.
const TABLES: [(&str, &str, fn()); 11] = [
    ("turns", "turns, in memory", turns::run),
    ("fan", "fan-out, in memory", fan::run),
    ("graphs", "graphs, in memory", graphs::run),
    ("durable", "durable steps", durable::run),
    ("files", "files of agents", files::run),
    ("many", "many trees at once", many::run),
    ("bus", "the bus, in memory", bus::run),
    ("cancel", "cancel", cancel::run),
    ("replay", "replay", replay::run),
    ("polls", "polls of a tree's task", polls::run),
    ("agents", "live agents", agents::run),
];

/// One environment for both of its scripts, here and below.
const LANGGRAPH_PACKAGES: &[&str] = &["langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2"];
const OPENAI_PACKAGES: &[&str] = &["openai-agents==0.24.0"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only checks that it starts.
    if words.iter().any(|word| word == "--test") {
        return;
    }
    let asked: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    for (name, title, run) in TABLES {
        if asked.is_empty() || asked.iter().any(|word| *word == name) {
            measure::title(title);
            run();
        }
    }
}
