//! `make soak SEED=… SECONDS=…`: every campaign in turn, each round from the next seed, until the time is up. It prints
//! what it tried, or the law that was broken with the seed that shows it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for people")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use spinney::clock::{Clock, SystemClock};
use spinney::rng::Rng;
use spinney_testkit::kill_campaign::{KillTally, kill_one_tree};
use spinney_testkit::sim;
use spinney_testkit::sim::whole::{self, CaseStore};
use spinney_testkit::transfer_campaign::{TransferTally, transfer_one_tree};

/// Decisions of a round, and batches of whole trees in memory and in SQLite: a few seconds each.
const STEPS: u64 = 50_000;
const BATCHES: u64 = 2_000;
const STORED_BATCHES: u64 = 200;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (mut seed, mut seconds) = (1, 60);
    for pair in words.chunks(2) {
        match (pair.first().map(String::as_str), pair.get(1).and_then(|number| number.parse().ok())) {
            (Some("--seed"), Some(number)) => seed = number,
            (Some("--seconds"), Some(number)) => seconds = number,
            _ => {
                eprintln!("soak: expected `--seed NUMBER` and `--seconds NUMBER`, got {}", pair.join(" "));
                return ExitCode::from(2);
            }
        }
    }
    let folder = std::env::temp_dir().join(format!("spinney-soak-{}", std::process::id()));
    let ran = soak(seed, seconds, &folder);
    // It may be gone already.
    let _ = std::fs::remove_dir_all(&folder);
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(broken) => {
            eprintln!("soak: {broken}");
            ExitCode::FAILURE
        }
    }
}

fn soak(first: u64, seconds: u64, folder: &Path) -> Result<(), String> {
    let (program, command_line) = (beside("campaign")?, beside("spinney")?);
    let clock = SystemClock::new();
    let until = clock.now_ms() + 1_000 * seconds;
    let (mut rounds, mut operations, mut batches) = (0, 0, 0);
    let (mut kills, mut transfers) = (KillTally::default(), TransferTally::default());
    while rounds == 0 || clock.now_ms() < until {
        let seed = first.wrapping_add(rounds);
        let at = |broken: String| format!("round {}: {broken}; again with SEED={seed}", rounds + 1);
        operations += sim::run(seed, STEPS).map_err(|broken| at(broken.to_string()))?.operations;
        let home = folder.join("trees");
        for (place, count) in [(CaseStore::Memory, BATCHES), (CaseStore::Sqlite(home), STORED_BATCHES)] {
            let tally = whole::run(seed, count, &place).map_err(|broken| at(broken.to_string()))?;
            batches += tally.batches;
        }
        let round = folder.join(format!("kills-{rounds}"));
        kills.add(&kill_one_tree(&program, &round, seed, &mut Rng::seeded(seed)).map_err(at)?);
        std::fs::remove_dir_all(&round).map_err(|error| error.to_string())?;
        std::fs::create_dir_all(&round).map_err(|error| error.to_string())?;
        transfers.add(&transfer_one_tree(&command_line, &round, &mut Rng::seeded(seed)).map_err(at)?);
        std::fs::remove_dir_all(&round).map_err(|error| error.to_string())?;
        rounds += 1;
    }
    println!(
        "{rounds} rounds from seed {first}: {operations} decisions, {batches} batches of whole trees that crash, {} kills of {} trees ({} calls resumed, {} lost), {} kills of {} trees that moved {} times: every law held",
        kills.kills,
        kills.trees,
        kills.resumed,
        kills.lost,
        transfers.kills,
        transfers.trees,
        transfers.moves,
    );
    Ok(())
}

/// A program that was built with this one.
fn beside(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = own.with_file_name(name);
    if program.exists() { Ok(program) } else { Err(format!("`{name}` was not built: use `make soak`")) }
}
