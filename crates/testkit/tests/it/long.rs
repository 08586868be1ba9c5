//! A long journal opens and replays a page at a time: ten times the events take no more memory.

use std::path::Path;
use std::process::Command;

/// How many events a command saw, and how many KiB it had at most.
fn long(words: &[&str], home: &Path) -> (u64, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_long"));
    command.arg(words[0]).arg(home).args(&words[1..]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    (numbers[0], numbers[1])
}

/// All of the longer journal would be tens of megabytes; what it may take more is what a database keeps at hand.
#[test]
fn a_hundred_thousand_events_open_and_replay_in_the_memory_of_ten_thousand() {
    const MORE_KIB_MAX: u64 = 8 * 1024;
    let peaks = ["10000", "100000"].map(|events| {
        let home = tempfile::tempdir().unwrap();
        let (built, _) = long(&["build", events], home.path());
        ["verify", "resume"].map(|verb| {
            let (seen, kib) = long(&[verb], home.path());
            // Coming back adds nothing here: no call was out.
            assert_eq!(seen, built, "{verb}");
            kib
        })
    });
    let [few, many] = peaks;
    for (verb, (few, many)) in ["verify", "resume"].into_iter().zip(few.into_iter().zip(many)) {
        assert!(many < few + MORE_KIB_MAX, "{verb}: {many} KiB for many events, {few} KiB for few");
    }
}
