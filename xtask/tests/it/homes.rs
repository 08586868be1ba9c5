//! Rule `homes`: every taboo once outside its home and once inside.

use super::{NOTHING, found};

/// What is mentioned where it must not be.
fn mentions(path: &str, text: &str) -> Vec<String> {
    let findings = found("homes", &[(path, text)]);
    findings.iter().filter_map(|line| line.split('`').nth(1).map(str::to_owned)).collect()
}

const STORE: &str = "crates/store/src/lib.rs";
const KERNEL: &str = "crates/kernel/src/lib.rs";
const BENCH: &str = "crates/testkit/benches/spawn.rs";
const TESTS: &str = "crates/store/tests/it/main.rs";

#[test]
fn names_resolve_through_the_imports_of_their_file() {
    let text = "fn f() { go(); fs::env(); around::var(x); }
        use std::{env as around, fs::{self, File}, thread::{/* why */ spawn as go}};";
    assert_eq!(mentions(STORE, text), ["std::env::var", "std::thread::spawn", "std::thread::spawn"]);
    let text =
        "use rand::Rng as _; fn f<'a>(_: &'a u8) -> impl Sized + use<'a> { let _ = (); dbg!(println!()) }";
    assert_eq!(mentions(STORE, text), ["println!", "rand::Rng"]);
    assert_eq!(mentions(STORE, "use std::env::*;"), ["std::env::*"]);
}

#[test]
fn only_the_clock_reads_the_time() {
    let text = "use std::time::Instant;\nfn f() {\n    Instant::now()\n}\n";
    assert_eq!(
        found("homes", &[(STORE, text)]),
        ["crates/store/src/lib.rs:3: homes: `std::time::Instant::now` reads the clock; take the time as \
          an argument: only crates/runtime/src/clock.rs reads it"]
    );
    assert_eq!(mentions(TESTS, "fn f() { std::time::SystemTime::now() }"), ["std::time::SystemTime::now"]);
    assert_eq!(mentions("crates/runtime/src/clock.rs", text), NOTHING);
    assert_eq!(mentions(BENCH, text), NOTHING);
    assert_eq!(mentions(STORE, "use std::time::Instant; fn f(at: Instant) {}"), NOTHING);
}

#[test]
fn only_the_draw_is_random() {
    let text = "use uuid::Uuid; fn f() { Uuid::now_v7(); rand::random(); }";
    assert_eq!(mentions(STORE, text), ["rand::random", "uuid::Uuid::now_v7"]);
    assert_eq!(
        mentions("crates/kernel/tests/it/main.rs", "use rand::{Rng as _, rng};"),
        ["rand::Rng", "rand::rng"]
    );
    assert_eq!(mentions("crates/runtime/src/rng.rs", text), NOTHING);
    assert_eq!(mentions("crates/testkit/src/simulator.rs", text), NOTHING);
    assert_eq!(mentions(STORE, "fn f(random: u64, brand: Brand) { operand::read() }"), NOTHING);
}

#[test]
fn only_tests_wait_for_a_journal_by_blocking() {
    let text = "use spinney_journal::{Blocking as _, Journal};
        fn f(journal: &dyn Journal) { journal.head(tree).wait(); pages(journal).blocking(); }";
    assert_eq!(mentions("crates/host/src/host.rs", text), ["spinney_journal::Blocking", ".blocking"]);
    assert_eq!(mentions("crates/cli/src/main.rs", "fn f(child: Child) { child.wait(); }"), NOTHING);
    for home in ["crates/testkit/src/conformance.rs", TESTS, BENCH] {
        assert_eq!(mentions(home, text), NOTHING);
    }
}

#[test]
fn only_the_runtime_starts_tasks() {
    let text = "use tokio::task;
        fn f(pool: Handle) { task::spawn(g()); pool.spawn_blocking(h); std::thread::spawn(i) }";
    assert_eq!(mentions(STORE, text), [".spawn_blocking", "std::thread::spawn", "tokio::task::spawn"]);
    assert_eq!(mentions(STORE, "#[cfg(test)] mod tests { fn f() { tokio::spawn(g()); } }"), NOTHING);
    for home in ["crates/runtime/src/tree.rs", "crates/cli/src/main.rs", TESTS, BENCH] {
        assert_eq!(mentions(home, text), NOTHING);
    }
    assert_eq!(mentions(STORE, "fn f(tree: Tree) { tree.spawn(); request::spawn::check() }"), NOTHING);
}

#[test]
fn every_queue_has_a_bound() {
    let text = "use std::sync::mpsc; fn f() { mpsc::channel(); tokio::sync::mpsc::unbounded_channel(); }";
    for path in [STORE, TESTS, BENCH, "crates/runtime/src/tree.rs"] {
        assert_eq!(
            mentions(path, text),
            ["std::sync::mpsc::channel", "tokio::sync::mpsc::unbounded_channel"]
        );
    }
    let text = "use tokio::sync::mpsc; fn unbounded() { mpsc::channel(QUEUE_MAX); Ceiling::unbounded(); }";
    assert_eq!(mentions(STORE, text), NOTHING);
}

#[test]
fn only_the_cli_reads_the_environment() {
    let text = "use std::env; fn f() { env::var(\"HOME\") }";
    assert_eq!(mentions(STORE, text), ["std::env::var"]);
    for home in ["crates/cli/src/home.rs", "crates/testkit/src/bin/sim.rs", "xtask/src/main.rs", BENCH] {
        assert_eq!(mentions(home, text), NOTHING);
    }
    assert_eq!(mentions(STORE, "const HERE: &str = env!(\"CARGO_MANIFEST_DIR\");"), NOTHING);
}

#[test]
fn only_programs_and_tests_print() {
    let text = "fn f() { println!(\"{}\", 1); std::eprintln!(); }";
    assert_eq!(mentions(STORE, text), ["println!", "std::eprintln!"]);
    assert_eq!(mentions("xtask/src/lib.rs", text), ["println!", "std::eprintln!"]);
    for home in ["crates/cli/src/ps.rs", "crates/testkit/src/bin/sim.rs", "xtask/src/main.rs", TESTS, BENCH] {
        assert_eq!(mentions(home, text), NOTHING);
    }
    assert_eq!(
        mentions(STORE, "#[expect(clippy::print_stdout)] fn f(print: u8) -> bool { print != (1) }"),
        NOTHING
    );
}

#[test]
fn only_the_sandbox_is_unsafe() {
    let text = "fn f() { unsafe { g() } }";
    assert_eq!(mentions(TESTS, text), ["unsafe"]);
    assert_eq!(mentions("crates/drivers/src/sandbox/filter.rs", text), NOTHING);
    assert_eq!(mentions(BENCH, text), NOTHING);
}

#[test]
fn the_kernel_is_pure() {
    assert_eq!(
        found("homes", &[(KERNEL, "fn cost(usage: u64) -> f64 { 0 }")]),
        ["crates/kernel/src/lib.rs:1: homes: `f64` rounds, and the kernel counts exactly; count in \
          integers of a small unit"]
    );
    let text = "
        async fn f() { g().await; let half = 0.5; let one = 1f32; }
        use std::collections::HashMap;
        fn g() -> HashMap<u8, u8> { vec![std::fs::read(p)] }
        use std::{net, process::Command};
        fn h() { net::TcpStream::connect(a); Command::new(b); tokio::time::sleep(c) }
    ";
    assert_eq!(
        mentions(KERNEL, text),
        [
            ".await",
            "async",
            "f32",
            "f64",
            "std::collections::HashMap",
            "std::collections::HashMap",
            "std::fs::read",
            "std::process::Command",
            "std::net::TcpStream::connect",
            "std::process::Command::new",
            "tokio::time::sleep",
        ]
    );
    assert_eq!(mentions("crates/runtime/src/tree.rs", text), NOTHING);
    let text = "
        //! Nothing async here, no f64, no HashMap.
        fn f(pair: ((u8, u8), u8)) -> u8 { log(\"async f64\"); pair.0.1 }
    ";
    assert_eq!(mentions(KERNEL, text), NOTHING);
}

#[test]
fn only_the_front_page_of_the_runtime_names_a_store() {
    let text = "pub use spinney_store::MemoryJournal;";
    assert_eq!(mentions("crates/runtime/src/home.rs", text), ["spinney_store::MemoryJournal"]);
    assert_eq!(mentions("crates/runtime/src/lib.rs", text), NOTHING);
    assert_eq!(mentions("crates/cli/src/home/open.rs", text), NOTHING);
}
