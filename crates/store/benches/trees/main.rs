//! `make bench`: whole trees on a journal, as ratios against references in the same run. Times alone say little on a
//! machine that does other things too, so nothing here fails on a time; `docs/bench.md` keeps the figures.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]

mod durable;
#[path = "../../../testkit/benches/bench/measure.rs"]
#[expect(dead_code, reason = "one set of tables for all benches; not each uses all")]
mod measure;
#[expect(dead_code, reason = "the plans without a table yet")]
mod tree;

fn main() {
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    measure::title("durable steps");
    durable::run();
}
