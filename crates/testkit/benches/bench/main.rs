//! `make bench`: what a decision costs, as ratios against references in the same run. Times alone say little on a
//! machine that does other things too, so nothing here fails on a time; `docs/bench.md` keeps the figures.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]

mod alloc;
mod contexts;
mod handle;
mod kernel;
#[expect(dead_code, reason = "one set of tables for all benches; not each uses all")]
mod measure;
mod memory;
mod peer;

/// The original of the parent-linked budget.
const VERONICA: peer::Script = peer::Script {
    home: "veronica",
    packages: &["veronica-core==3.10.0"],
    path: "benches/bench/veronica.py",
};

fn main() {
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    // The two are not measured at the same moment: each is taken at several, and the least of them counts.
    let mut lives = vec![kernel::life_ns()];
    let peer = peer::measure(&VERONICA).map_err(|why| println!("veronica-core is not measured: {why}")).ok();
    lives.push(kernel::life_ns());
    measure::title("hold + settle through the handle");
    handle::run(peer.as_ref());
    lives.push(kernel::life_ns());
    measure::title("kernel: one child's life");
    kernel::run(&lives, peer.as_ref());
    measure::title("contexts");
    contexts::run();
    measure::title("memory");
    memory::run(peer.as_ref());
}
