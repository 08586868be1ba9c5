//! `cargo bench -p spinney-drivers`: what counting costs, against the library alone in the same run, and how the time for
//! hostile texts grows with their length. Times alone say little on a machine that does other things too, so nothing
//! here fails on a time.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

use std::hint::black_box;
use std::time::Instant;

use spinney_drivers::tokens::Tokenizer;
use spinney_kernel::primitives::Body;

const ROUNDS: usize = 41;
/// How much more than the library our count may take.
const BOUND: f64 = 1.2;

fn main() {
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    for (tokenizer, name) in [(Tokenizer::O200k, "o200k_base"), (Tokenizer::Cl100k, "cl100k_base")] {
        let start = Instant::now();
        let library = tiktoken::get_encoding(name).unwrap();
        println!("{}: the vocabulary is unpacked in {:.0} ms", tokenizer.name(), millis(start));
        println!("{:<38} {:>9} {:>9} {:>8}", "", "library", "ours", "ratio");
        for (what, text) in texts() {
            let [raw, ours] = in_turns([&|| library.count(&text) as u64, &|| tokenizer.bound(&text)]);
            let ratio = ours / raw;
            let verdict = if ratio <= BOUND { "" } else { " MISSED" };
            println!("{what:<38} {raw:>6.1} µs {ours:>6.1} µs {ratio:>7.2}x (at most {BOUND}x){verdict}");
        }
        let mut body = Body::text(texts().swap_remove(2).1);
        body.count(&|text| tokenizer.bound(text).into());
        let [raw, cached] = in_turns([&|| library.count(&body.text) as u64, &|| body.counted().bound()]);
        let share = cached / raw;
        println!("{:<38} {raw:>6.1} µs {cached:>6.1} µs {share:>7.3}x\n", "a text that was counted before");
    }
    println!("hostile texts, ours: a byte at       1 MB     16 MB");
    for tokenizer in [Tokenizer::O200k, Tokenizer::Cl100k] {
        for (what, bit) in [("one letter", "a"), ("letters in stretches", STRETCH), ("noise", "")] {
            let [short, long] = [1, 16].map(|megabytes| hostile(tokenizer, bit, megabytes << 20));
            println!("{:<30} {short:>7.1} ns {long:>6.1} ns", format!("{}: {what}", tokenizer.name()));
        }
    }
}

/// Stands for thirty thousand letters and a space: the longest stretch that the library is given.
const STRETCH: &str = "stretch";

/// Texts as they come: a short answer, a page of prose, code of the length of the largest inline text.
fn texts() -> Vec<(&'static str, String)> {
    let prose =
        "The lead read both reports before lunch, and nobody could say why the figures did not agree. ";
    let code =
        "fn main() {\n    let total: u64 = (1..=10).map(|n| n * n).sum();\n    println!(\"{total}\");\n}\n";
    vec![
        ("a sentence", prose.to_owned()),
        ("a page, 4 KiB", prose.repeat(44)),
        ("prose, 32 KiB", prose.repeat(352)),
        ("code, 32 KiB", code.repeat(364)),
        ("chinese, 32 KiB", "这棵树每年长高一米。工人们在春天种下它，没有人知道它会活多久！".repeat(350)),
        ("prose, 1 MiB", prose.repeat(11_000)),
    ]
}

/// Nanoseconds per byte of a text that is made to take long.
fn hostile(tokenizer: Tokenizer, bit: &str, bytes: usize) -> f64 {
    let stretch = || "qz".repeat(15_000) + " ";
    let text = match bit {
        "" => String::from_utf8_lossy(&noise(bytes)).into_owned(),
        STRETCH => stretch().repeat(bytes / 30_001),
        bit => bit.repeat(bytes),
    };
    let start = Instant::now();
    black_box(tokenizer.bound(black_box(&text)));
    start.elapsed().as_nanos() as f64 / text.len() as f64
}

fn noise(count: usize) -> Vec<u8> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// Median microseconds of several things, measured in turns, so noise hits all alike.
fn in_turns<const N: usize>(runs: [&dyn Fn() -> u64; N]) -> [f64; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..ROUNDS {
        for (run, times) in runs.iter().zip(&mut times) {
            let start = Instant::now();
            black_box(run());
            times.push(start.elapsed().as_nanos() as f64 / 1_000.0);
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

fn millis(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / 1_000_000.0
}
