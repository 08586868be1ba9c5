//! A process that is killed while it writes step files and long outputs over and over: each file is a complete earlier
//! or newer version.
//! The process is this test binary, started again for one test.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spinney_testkit::TestHome;
use spinney_testkit::spinney::rng::Rng;

use crate::{Ran, files};

/// Where the other process finds its home. In any other run it is not set.
const HOME: &str = "SPINNEY_TEST_WORKSPACE";
const KILLS: u64 = 40;
const FIXTURE: &str = "root $9.00 turns=20";

/// Two trees with the same id and the same number of steps, and not one byte of a step's observation in common.
fn versions() -> [Ran; 2] {
    ["a", "b"].map(|letter| {
        let asks = ["{ tool: look }"; 24].join(", ");
        let script = format!(
            "rules:\n  - when: {{ turn: 1 }}\n    call: [ {asks} ]\n  - say: Done.\ntools: {{ look: {{ say: \"{{{{ key }}}} {}\" }} }}\n",
            letter.repeat(4_000)
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime
            .unwrap_or_else(|error| panic!("{error}"))
            .block_on(Ran::play(&TestHome::new(&script), FIXTURE))
    })
}

/// Writes one version over the other until it is killed.
#[test]
#[expect(clippy::disallowed_methods, reason = "a process that starts itself again has to tell itself so")]
fn what_the_killed_process_does() {
    let Some(home) = std::env::var_os(HOME) else { return };
    let versions = versions();
    loop {
        for version in &versions {
            version.mend(Path::new(&home)).unwrap();
            println!("\nround");
        }
    }
}

/// Starts the other process, and kills it somewhere in a round.
fn kill_one(home: &Path, rounds: usize, spins: u64) {
    let mut child = Command::new(std::env::current_exe().unwrap_or_else(|error| panic!("{error}")))
        .args(["--exact", "killed::what_the_killed_process_does", "--nocapture"])
        .env(HOME, home)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{error}"));
    let out = child.stdout.take().unwrap_or_else(|| panic!("it has no output"));
    let seen =
        BufReader::new(out).lines().map_while(Result::ok).filter(|line| line.ends_with("round")).take(rounds);
    assert_eq!(seen.count(), rounds, "it ended by itself");
    (0..spins).for_each(|_| std::hint::spin_loop());
    child.kill().unwrap_or_else(|error| panic!("{error}"));
    child.wait().unwrap_or_else(|error| panic!("{error}"));
}

/// P22, L10: after any kill each file is a complete earlier or newer version, and the next process makes all of them what
/// the journal says.
#[test]
fn p22_l10_a_killed_process_leaves_each_file_whole() {
    let versions = versions();
    assert_eq!(versions[0].tree, versions[1].tree);
    let home = tempfile::tempdir().unwrap();
    let expected = versions.each_ref().map(|version| version.files(home.path()));
    let mut draws = Rng::seeded(7);
    let (mut mixed, mut unfinished) = (0, 0);
    for kill in 0..KILLS {
        kill_one(home.path(), 1 + (draws.next() % 3) as usize, draws.next() % 400_000);
        let found = files(home.path());
        let (steps, left): (BTreeMap<_, _>, BTreeMap<_, _>) =
            found.into_iter().partition(|(path, _)| !path.to_string_lossy().contains(".unfinished-"));
        unfinished += left.len();
        for (path, bytes) in &steps {
            assert!(
                expected.iter().any(|files| files.get(path) == Some(bytes)),
                "{} after kill {kill}",
                path.display()
            );
        }
        // One version's long outputs may be there beside the other's until its history is complete.
        let of_history = |files: &BTreeMap<PathBuf, Vec<u8>>| {
            files.keys().filter(|path| path.to_string_lossy().contains("/history/")).count()
        };
        assert_eq!(of_history(&steps), of_history(&expected[0]), "after kill {kill}");
        mixed += usize::from(expected.iter().all(|files| files != &steps));
    }
    // The kills met rounds and files that were not finished.
    assert!(mixed > 5, "{mixed} of {KILLS}");
    println!("{KILLS} kills: {mixed} in the middle of a round, {unfinished} in the middle of a file");
    versions[1].mend(home.path()).unwrap();
    assert_eq!(files(home.path()), expected[1]);
}
