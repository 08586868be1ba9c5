//! A long journal is opened and replayed a page at a time: ten times the events take no more memory.

use std::path::Path;
use std::process::Command;

/// Runs a command, and returns the number of events and the peak memory in KiB.
fn long(words: &[&str], home: &Path) -> (u64, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_long"));
    command.arg(words[0]).arg(home).args(&words[1..]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    (numbers[0], numbers[1])
}

/// The longer journal has tens of megabytes. What a process may need more for it are the page caches of SQLite: the
/// connections of the writer and of the four readers fill theirs, whichever reader gets how many of the pages.
#[test]
fn a_hundred_thousand_events_open_and_replay_in_the_memory_of_ten_thousand() {
    const MORE_KIB_MAX: u64 = 4 * 1024;
    let peaks = ["10000", "100000"].map(|events| {
        let home = tempfile::tempdir().unwrap();
        let (built, _) = long(&["build", events], home.path());
        ["verify", "resume"].map(|verb| {
            let (seen, kib) = long(&[verb], home.path());
            // Resuming adds no event here, because no call was running.
            assert_eq!(seen, built, "{verb}");
            kib
        })
    });
    let [few, many] = peaks;
    for (verb, (few, many)) in ["verify", "resume"].into_iter().zip(few.into_iter().zip(many)) {
        assert!(many < few + MORE_KIB_MAX, "{verb}: {many} KiB for many events, {few} KiB for few");
    }
}
