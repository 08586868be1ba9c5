//! How long short commands take, from their start to their end, against a hello-world program that opens the same SQLite
//! file once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use spinney_kernel::primitives::Durability;

use crate::measure::{at_most, median, paired, row, time};
use crate::tree::{self, Plan};
use crate::{SPINNEY, peer};

const TREES: usize = 1_000;
const SIDE_JOURNALS: usize = 1_000;
/// Turns of each tree: some sixty events.
const TURNS: u32 = 10;
const ROUNDS: usize = 101;
const VERSION_MAX: f64 = 3.0;
const PS_MAX: f64 = 5.0;
/// Against as many trees in one journal.
const PS_SIDE_MAX: f64 = 5.0;

pub(crate) fn run() -> Result<(), String> {
    let reference = reference()?;
    let (trees, sides) = (tree::folder(), tree::folder());
    make_trees(trees.path(), TREES);
    make_side_journals(sides.path())?;
    let journal = trees.path().join("journal.sqlite3");
    let ps = |home: &Path| command(Path::new(SPINNEY), &["--home".as_ref(), home, "ps".as_ref()]);
    let mut commands = [
        command(&reference, &[&journal]),
        command(Path::new(SPINNEY), &["--version".as_ref()]),
        ps(trees.path()),
        ps(sides.path()),
    ];
    let mut took = [const { Vec::new() }; 4];
    for round in 0..=ROUNDS {
        for (command, took) in commands.iter_mut().zip(&mut took) {
            let ns = timed(command)?;
            // The first round reads files that no later one has to read.
            if round > 0 {
                took.push(ns);
            }
        }
    }
    let [hello, version, ps, ps_sides] = took;
    let other = format!("{} (hello + SQLite)", time(median(hello.clone())));
    let relations = [
        ("--version", &version, at_most(paired(&version, &hello), VERSION_MAX)),
        ("ps, 1,000 trees", &ps, at_most(paired(&ps, &hello), PS_MAX)),
    ];
    for (what, ours, relation) in relations {
        row(what, &time(median(ours.clone())), &other, &relation);
    }
    let one = format!("{} (in one journal)", time(median(ps.clone())));
    let relation = at_most(paired(&ps_sides, &ps), PS_SIDE_MAX);
    row("ps, 1,000 side journals", &time(median(ps_sides)), &one, &relation);
    Ok(())
}

/// Builds the reference in the profile of benches.
fn reference() -> Result<PathBuf, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "--profile", "bench", "-p", "spinney-cli"]);
    peer::run(cargo.args(["--example", "hello_sqlite"]))?;
    Ok(Path::new(SPINNEY).with_file_name("examples").join("hello_sqlite"))
}

fn command(program: &Path, words: &[&Path]) -> Command {
    let mut command = Command::new(program);
    command.args(words).env_remove("SPINNEY_HOME").env_remove("SPINNEY_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn timed(command: &mut Command) -> Result<f64, String> {
    let start = Instant::now();
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    let ns = start.elapsed().as_nanos() as f64;
    if status.success() { Ok(ns) } else { Err(format!("{command:?}: {status}")) }
}

/// A home with trees that have ended.
fn make_trees(folder: &Path, count: usize) -> Vec<String> {
    tree::runtime().block_on(async {
        let home = tree::home(tree::sqlite(folder), Plan::Turns(TURNS));
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(tree::run(&home, Durability::Off).await.id().to_string());
        }
        ids
    })
}

/// A home that has only side journals, each named after its tree. The first round remembers what it reads.
fn make_side_journals(folder: &Path) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    let (made, runs) = (folder.join("made"), folder.join("runs"));
    fs::create_dir(&runs).map_err(io)?;
    for _ in 0..SIDE_JOURNALS {
        let id = make_trees(&made, 1).concat();
        fs::rename(&made, runs.join(id)).map_err(io)?;
    }
    Ok(())
}
