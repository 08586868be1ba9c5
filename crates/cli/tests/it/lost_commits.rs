//! Confirmed commits that are missing, on the real binary: reported before anything runs, and given up only if a person
//! says so. Deleting a home while a tree runs is an error and never a success.

use std::fs;
use std::path::{Path, PathBuf};

use crate::test_folder::{Playing, TestFolder};

/// Two turns with a tool call between them, and a third that runs long enough to be killed.
const SCRIPT: &str = "
tools:
  note: { say: noted }
rules:
  - when: { turn: 1 }
    call: [{ tool: note, args: {} }]
  - when: { turn: 2 }
    call: [{ tool: note, args: { again: true } }]
  - when: { turn: 3 }
    think_ms: 60000
    say: late
  - say: done
";

fn wal(home: &Path) -> PathBuf {
    home.join("journal.sqlite3-wal")
}

/// Runs a tree until its slow turn.
fn begun(stage: &TestFolder) -> Playing {
    let file = stage.tree("note", SCRIPT);
    let mut run = stage.play(&["run", &file]);
    run.until("starts");
    run.until("noted");
    run.until("noted");
    run
}

/// Copies the home of a killed run, so it can be damaged in many ways.
fn copied(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copied(&path, &target);
        } else if path.is_file() {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// G13: a damaged, truncated or deleted WAL file is reported with what was lost, and nothing runs; `--accept-loss`
/// continues from what is left.
#[test]
fn g13_a_damaged_write_ahead_file_is_named_and_nothing_runs_until_the_loss_is_accepted() {
    let stage = TestFolder::new().at("killed");
    begun(&stage).kill();
    let right = fs::read(wal(stage.home())).unwrap();
    let damaged = stage.folder().join("damaged");
    let home = damaged.display().to_string();
    let middle = right.len() / 2;
    let flipped = [&right[..middle], &[right[middle] ^ 4], &right[middle + 1..]].concat();
    for (what, bytes) in
        [("flipped", Some(flipped)), ("cut", Some(right[..middle].to_vec())), ("deleted", None)]
    {
        copied(stage.home(), &damaged);
        match bytes {
            Some(bytes) => fs::write(wal(&damaged), bytes).unwrap(),
            None => fs::remove_file(wal(&damaged)).unwrap(),
        }
        for command in
            [&["resume", "last"][..], &["ps"], &["events", "last"], &["replay", "last", "--verify"]]
        {
            let ended = stage.spinney(&[command, &["--home", &home]].concat());
            assert_eq!(ended.code, Some(1), "{what}, {command:?}: {ended:?}");
            assert!(
                ended.err.contains("were confirmed but are missing"),
                "{what}, {command:?}: {}",
                ended.err
            );
            assert!(ended.err.contains("--accept-loss"), "{what}, {command:?}: {}", ended.err);
            assert_eq!(ended.out, "", "{what}, {command:?}");
        }
        let accepted = stage.spinney(&["ps", "--accept-loss", "--home", &home]);
        assert_eq!(accepted.code, Some(0), "{what}: {accepted:?}");
        assert!(accepted.err.contains("gave up commits"), "{what}: {}", accepted.err);
        assert!(damaged.join("set-aside-1").is_dir(), "{what}");
        assert_eq!(stage.spinney(&["ps", "--home", &home]).code, Some(0), "{what}");
    }
    // Even if the loss cannot be accepted, the last line is a result.
    fs::write(damaged.join("journal.sqlite3"), "not a database").unwrap();
    let refused = stage.spinney(&["resume", "last", "--json", "--accept-loss", "--home", &home]);
    assert_eq!((refused.code, &refused.result()["type"]), (Some(1), &"result".into()), "{refused:?}");
    // The undamaged home continues normally.
    let ps = stage.spinney(&["ps"]);
    assert_eq!(ps.code, Some(0), "{ps:?}");
    assert!(!ps.err.contains("missing") && ps.out.contains("interrupted"), "{ps:?}");
}

/// Deletes a file or a folder, in which a process may still create files.
fn delete(path: &Path) {
    while path.exists() {
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

/// A tree whose journal is deleted while it runs stops with an error: it did not complete, and nothing is stored.
#[test]
fn a_home_that_is_deleted_while_a_tree_runs_is_an_error_and_never_a_success() {
    // Long enough for a slow machine.
    const THINKS: &str = "
tools:
  note: { say: noted }
rules:
  - when: { turn: 1 }
    call: [{ tool: note, args: {} }]
  - think_ms: 3000
    say: done
";
    let cases = [("home", ""), ("database", "journal.sqlite3"), ("write-ahead file", "journal.sqlite3-wal")];
    let runs = cases.map(|(what, file)| {
        let stage = TestFolder::new().at("deleted");
        let tree = stage.tree("note", THINKS);
        let mut run = stage.play(&["run", &tree]);
        run.until("noted");
        delete(&stage.home().join(file));
        (what, stage, run)
    });
    for (what, _stage, run) in runs {
        let ended = run.end();
        assert_eq!(ended.code, Some(1), "{what}: {ended:?}");
        assert!(ended.err.contains("was deleted or replaced"), "{what}: {}", ended.err);
        assert!(!ended.out.contains("completed"), "{what}: {ended:?}");
        assert!(!ended.err.contains("safe in the journal"), "{what}: {ended:?}");
    }
}
