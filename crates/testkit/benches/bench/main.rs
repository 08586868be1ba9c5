//! `make bench`: the cost of a decision, as ratios against references in the same run. Absolute times mean little on a
//! busy machine, so nothing here fails on a time; `docs/bench.md` has the figures.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]

mod alloc;
mod caches;
mod contexts;
mod handle;
mod kernel;
#[expect(dead_code, reason = "one set of tables for all benches; not each uses all")]
mod measure;
mod memory;
mod peer;

/// The original parent-linked budget.
const VERONICA: peer::Script = peer::Script {
    home: "veronica",
    packages: &["veronica-core==3.10.0"],
    path: "benches/bench/veronica.py",
};

fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    // Virtual time: it needs no quiet machine, so it can be printed alone.
    if std::env::args().any(|word| word == "caches") {
        caches();
        return;
    }
    // The two are measured at different moments, so each is measured several times, and the minimum counts.
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
    caches();
    measure::title("memory");
    memory::run(peer.as_ref());
}

fn caches() {
    measure::title("prompt caches, in virtual time");
    caches::run();
}
