//! `make bench`: what the command line itself costs: how long short commands take, and what the live view needs. Absolute
//! times mean little on a busy machine, so nothing here fails on a time; `docs/bench.md` has the figures.
//! `cargo bench -p spinney-cli --bench command_line -- start` prints one table only.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]

#[path = "../../../server/benches/gateway/format.rs"]
#[expect(dead_code, reason = "one set of formats for all benches; not each uses all")]
mod format;
mod live;
#[path = "../../../testkit/benches/bench/measure.rs"]
#[expect(dead_code, reason = "one set of tables for all benches; not each uses all")]
mod measure;
#[path = "../../../server/benches/gateway/mock.rs"]
#[expect(dead_code, reason = "one provider for all benches; not each uses all of it")]
mod mock;
#[path = "../../../testkit/benches/bench/peer.rs"]
#[expect(dead_code, reason = "of the others only how a command is run")]
mod peer;
mod programs;
#[path = "../../../server/benches/gateway/raw_client.rs"]
#[expect(dead_code, reason = "one client for all benches; not each uses all of it")]
mod raw_client;
mod start;
#[path = "../../../store/benches/trees/tree.rs"]
#[expect(dead_code, reason = "one set of trees for all benches; not each uses all")]
mod tree;

/// The binary, built like this bench.
const SPINNEY: &str = env!("CARGO_BIN_EXE_spinney");

/// Prints the rows of a table, or says why they cannot be measured.
type Measure = fn() -> Result<(), String>;

/// Each table by name, with its heading.
const TABLES: [(&str, &str, Measure); 3] = [
    ("start", "short commands", start::run),
    ("live", "the live view", live::run),
    ("programs", "programs as agents", programs::run),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only checks that it starts.
    if words.iter().any(|word| word == "--test") {
        return;
    }
    let first = words.first().map(String::as_str).unwrap_or_default();
    if [mock::WORD, programs::CALLS, programs::STAYS].contains(&first) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        match first {
            mock::WORD => runtime.block_on(mock::serve()),
            word => runtime.block_on(programs::program(word)),
        }
        return;
    }
    let asked: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    for (name, title, run) in TABLES {
        if asked.is_empty() || asked.iter().any(|word| *word == name) {
            measure::title(title);
            if let Err(why) = run() {
                println!("not measured: {why}");
            }
        }
    }
}
