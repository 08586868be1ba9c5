//! `cargo bench -p spinney-server --bench gateway`: what a call costs on its way through the gateway, against the same
//! provider asked directly and through a plain reverse proxy in the same run. The provider is a separate process.
//! Times alone say little on a machine that does other things too, so nothing here fails on a time.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

#[path = "../../../testkit/benches/bench/alloc.rs"]
mod alloc;
mod exec_run;
mod first_token;
mod format;
#[path = "../../../testkit/benches/bench/measure.rs"]
#[expect(dead_code, reason = "one set of tables for all benches; not each uses all")]
mod measure;
mod memory;
mod mock;
mod plain_proxy;
mod raw_client;
mod throughput;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Streams at the same time, where there are many.
const STREAMS: usize = 1_000;
/// Each stream takes a connection of the client and two of the gateway.
const OPEN_FILES: u64 = 4 * STREAMS as u64;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only wants to know that it starts.
    if words.iter().any(|word| word == "--test") {
        return;
    }
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _few = setrlimit(Resource::Nofile, Rlimit { current: Some(OPEN_FILES), maximum });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if words.iter().any(|word| word == mock::WORD) {
        runtime.block_on(mock::serve());
        return;
    }
    let is_asked = |name: &str| words.iter().all(|word| word.starts_with("--") || word == name);
    let mock = mock::Mock::start();
    measure::title("gateway");
    if is_asked("first") {
        runtime.block_on(first_token::run(&mock));
    }
    if is_asked("streams") {
        runtime.block_on(throughput::run(&mock));
    }
    // What counts bytes comes last: counting takes time.
    if is_asked("memory") {
        runtime.block_on(memory::run(&mock));
    }
}
