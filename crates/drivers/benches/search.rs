//! `cargo bench -p spinney-drivers --bench search`: `search_files` over 10,000 files of an agent, against ripgrep's own
//! libraries over the same files in the same run: its parallel walk with ignore files, its searcher and its matcher, without
//! the start of a process.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use grep_regex::RegexMatcherBuilder;
use grep_searcher::{BinaryDetection, SearcherBuilder, sinks::Bytes};
use ignore::{WalkBuilder, WalkState};
use serde_json::json;
use spinney_drivers::files::{FileTool, Files};
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::context::Origin;
use spinney_kernel::port::AgentFolder;
use spinney_kernel::port::tool::ToolAttempt;
use spinney_kernel::primitives::{CallId, TreeId};

const FOLDERS: usize = 100;
const FILES: usize = 100;
const ROUNDS: usize = 31;
/// How much more than ripgrep's libraries a search may take.
const BOUND: f64 = 1.5;
const TREE: TreeId = TreeId::new([7; 16]);

fn main() {
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let outputs = Workspaces::root(home.path()).join(TREE.to_string()).join("lead/outputs");
    fill(&outputs);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("{:<44} {:>10} {:>10} {:>8}", "10,000 files, 40 MB", "ripgrep", "ours", "ratio");
    for (what, pattern, lines) in [
        ("a word that is in 10 files", "needle", 10),
        ("an expression that is in 10 files", r"ne+dle\s+\d{3}", 10),
        ("a word that is nowhere", "absent", 0),
        ("any case, in 10 files", "(?i)NEEDLE", 10),
        ("a line in each of 1,000 files", "thousandth", 1_000),
    ] {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let start = Instant::now();
            assert_eq!(ripgrep(&outputs, pattern), lines);
            theirs.push(millis(start));
            let start = Instant::now();
            let text = runtime.block_on(search(home.path(), pattern));
            ours.push(millis(start));
            assert!(text.contains(&format!("[{} matching line", lines.min(200))), "{text}");
        }
        let (theirs, ours) = (median(theirs), median(ours));
        let ratio = ours / theirs;
        let verdict = if ratio <= BOUND { "" } else { " MISSED" };
        println!("{what:<44} {theirs:>7.1} ms {ours:>7.1} ms {ratio:>7.2}x (at most {BOUND}x){verdict}");
    }
}

/// Files of 4 KB as they are in a repository, in folders with ignore files.
fn fill(outputs: &Path) {
    let line = "    let total: u64 = (1..=10).map(|n| n * n).sum(); // the sum of the squares\n";
    for folder in 0..FOLDERS {
        let path = outputs.join(format!("{:02}/{folder:02}", folder % 10));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(".gitignore"), "*.log\n/target\n").unwrap();
        for file in 0..FILES {
            let mut text = line.repeat(50);
            if folder % 10 == 3 && file == 57 {
                text += "the needle 123 is here\n";
            }
            if file % 10 == 4 {
                text += "every thousandth word\n";
            }
            fs::write(path.join(format!("file_{file:02}.rs")), text).unwrap();
        }
    }
}

/// How many lines ripgrep's libraries find.
fn ripgrep(outputs: &Path, pattern: &str) -> u64 {
    let matcher = RegexMatcherBuilder::new().line_terminator(Some(b'\n')).build(pattern).unwrap();
    let found = AtomicU64::new(0);
    let walk = WalkBuilder::new(outputs).require_git(false).git_global(false).parents(false).build_parallel();
    walk.run(|| {
        let (matcher, found) = (matcher.clone(), &found);
        let mut searcher =
            SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).line_number(true).build();
        Box::new(move |entry| {
            let entry = entry.unwrap();
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                let count = Bytes(|_, _| {
                    found.fetch_add(1, Ordering::Relaxed);
                    Ok(true)
                });
                searcher.search_path(&matcher, entry.path(), count).unwrap();
            }
            WalkState::Continue
        })
    });
    found.into_inner()
}

async fn search(home: &Path, pattern: &str) -> String {
    let path = vec!["lead".parse().unwrap()].into();
    let origin = Arc::new(Origin { tree: TREE, path, role: "lead".parse().unwrap(), goal: "Find.".into() });
    let (name, args) = (FileTool::Search.name(), json!({ "pattern": pattern }).to_string());
    let mut attempt = ToolAttempt::new(Arc::clone(&origin), CallId(1), "k".to_owned(), name, args);
    attempt.workspace = Some(AgentFolder::new(Workspaces::root(home).into(), origin));
    Files::default().tool(FileTool::Search).call(attempt).await.unwrap().text
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn millis(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1_000.0
}
