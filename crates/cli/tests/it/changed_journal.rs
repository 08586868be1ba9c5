//! The journal of a run is a file that its program can write, because both have the same user. A run whose journal was
//! changed while it runs stops: nothing more is sent, and nothing is booked on top of what was changed.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;

use crate::exec::{exec, used};
use crate::test_folder::TestFolder;
use crate::upstream::Upstream;

/// The only run's journal.
fn journal(stage: &TestFolder) -> PathBuf {
    let run = fs::read_dir(stage.home().join("runs")).unwrap().next().unwrap().unwrap();
    run.path().join("journal.sqlite3")
}

fn empty(path: &Path) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(0).unwrap();
}

type ChangeJournal = fn(&Path);

/// A run whose journal was changed ends with an error, and its program gets no further answer from a model.
#[test]
fn a_run_whose_journal_was_changed_stops() {
    let cases: [(&str, ChangeJournal); 4] = [
        // The tests of the store have what else may be written.
        ("a write", |file| Connection::open(file).unwrap().pragma_update(None, "user_version", 99).unwrap()),
        ("a copy", |file| {
            let copy = file.with_extension("copy");
            fs::copy(file, &copy).unwrap();
            fs::rename(copy, file).unwrap();
        }),
        ("an emptied database", empty),
        ("an emptied WAL file", |file| empty(&file.with_extension("sqlite3-wal"))),
    ];
    for (what, change) in cases {
        let stage = TestFolder::new();
        let upstream = Upstream::new(vec![used(100)]);
        let fifo = stage.folder().join("go");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let script = "call 100 one\nread -r _ < go\ncall 100 two\necho more";
        let mut running = exec(&stage, &upstream, &["--budget-usd", "1"], script);
        running.until("used 100");
        // Nothing is written between the booking of this call and the next one.
        let is_booked =
            || stage.spinney(&["events", "last", "--json"]).out.contains("\"cost_nanos\":100000000");
        while !is_booked() {}
        change(&journal(&stage));
        // Opened for both, so it does not wait for a program that has ended already.
        let mut go = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        go.write_all(b"go\n").unwrap();
        let ended = running.end();
        assert_eq!(ended.code, Some(1), "{what}: {} {}", ended.out, ended.err);
        // A reader may see first that something is missing.
        let faults = ["was changed by another process", "was deleted or replaced", "is damaged"];
        assert!(faults.iter().any(|fault| ended.err.contains(fault)), "{what}: {}", ended.err);
        assert_eq!(upstream.asked().len(), 1, "{what}: nothing more went up");
    }
}
