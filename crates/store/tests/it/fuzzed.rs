//! The bodies of the fuzz targets on their seeds and on inputs mutated from them. The same inputs on every machine:
//! the search for others is `fuzz/`.

#![expect(clippy::expect_used, reason = "the body of a fuzz target stops at the first surprise")]

#[path = "../../../../fuzz/bodies/event_decoder.rs"]
mod event_decoder;
#[path = "../../../../fuzz/bodies/expressions.rs"]
mod expressions;
#[path = "../../../../fuzz/bodies/journal_reader.rs"]
mod journal_reader;
#[path = "../../../../fuzz/bodies/pipeline.rs"]
mod pipeline;
#[path = "../../../../fuzz/bodies/tree_file.rs"]
mod tree_file;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

#[test]
fn no_bytes_break_the_event_decoder() {
    let mutations =
        Mutations::new("event_decoder", &["\"type\":", "null", "[]", "{}", "-1", "18446744073709551616"]);
    let read = |seed: &Vec<u8>| serde_json::from_slice::<spinney_journal::Batch>(seed).is_ok();
    assert!(mutations.seeds.iter().all(read), "the seeds are batches");
    mutations.run(1_500, event_decoder::run);
}

#[test]
fn no_bytes_break_expressions() {
    let words = [
        "{{",
        "}}",
        " and ",
        " not ",
        "(",
        ")",
        "[",
        "]",
        "'",
        "| length",
        "| default(1)",
        "xs",
        "o.a",
        "==",
    ];
    Mutations::new("expressions", &words).run(4_000, expressions::run);
}

#[test]
fn no_bytes_break_the_reader_of_journals() {
    Mutations::new("journal_reader", &["\u{1}", "\"events\":", "null"]).run(300, journal_reader::run);
}

#[test]
fn no_bytes_break_run_pipeline() {
    let words = [
        "{}",
        "[]",
        "null",
        "true",
        "-1",
        "99999999999",
        "\"\"",
        "{{ one }}",
        "{{ item",
        "\"steps\":",
        "\"race\":",
        "\"sequence\":",
        "\"agent_id\": \"critic\", ",
        "\"retry\": 2, ",
        "\"required\": false, ",
        "\"list\"",
        ",",
    ];
    Mutations::new("pipeline", &words).run(2_000, pipeline::run);
}

#[test]
fn no_bytes_break_tree_files() {
    let words =
        ["\n", "  ", "- ", ": ", "{", "}", "&a ", "*a", "pipeline:", "steps:", "agents:", "!!int ", "null"];
    Mutations::new("tree_file", &words).run(1_000, tree_file::run);
}

/// Inputs that are nearly right, from a fixed seed (SplitMix64).
struct Mutations {
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
    state: u64,
}

impl Mutations {
    fn new(target: &str, words: &[&str]) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
        assert!(!seeds.is_empty());
        Self { seeds, words: words.iter().map(|word| word.as_bytes().to_vec()).collect(), state: 20 }
    }

    fn run(mut self, cases: usize, body: fn(&[u8])) {
        for seed in self.seeds.clone() {
            judged(&seed, body);
        }
        for _ in 0..cases {
            let bytes = self.input();
            judged(&bytes, body);
        }
    }

    fn input(&mut self) -> Vec<u8> {
        let at = self.below(self.seeds.len());
        let mut bytes = self.seeds[at].clone();
        for _ in 0..=self.below(5) {
            self.mutate(&mut bytes);
        }
        bytes
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        let from = self.below(bytes.len() + 1);
        let to = (from + self.below(40)).min(bytes.len());
        match self.below(6) {
            0 if from < bytes.len() => bytes[from] ^= 1 << self.below(8),
            1 => drop(bytes.drain(from..to)),
            2 => {
                let (part, at) = (bytes[from..to].to_vec(), self.below(bytes.len() + 1));
                bytes.splice(at..at, part);
            }
            3 => bytes.truncate(from),
            _ => {
                let at = self.below(self.words.len());
                let word = self.words[at].clone();
                // Instead of what is there, as often as before it.
                let to = if self.below(2) == 0 { from } else { (from + word.len()).min(bytes.len()) };
                bytes.splice(from..to, word);
            }
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as usize % bound.max(1)
    }
}

/// Names the input that broke it.
fn judged(bytes: &[u8], body: fn(&[u8])) {
    let result = catch_unwind(AssertUnwindSafe(|| body(bytes)));
    assert!(result.is_ok(), "broken by {:?}", String::from_utf8_lossy(bytes));
}
