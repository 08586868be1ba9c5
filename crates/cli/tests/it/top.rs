//! `spinney top`: the trees of a home and the runs of `exec` in it, as they come and go.

use std::fs;

use serde_json::Value;

use crate::scripts::SAYS;
use crate::stage::{Playing, Stage};

/// A run of `exec` whose program does not end by itself.
fn run(stage: &Stage) -> Playing {
    let program = "echo started; exec sleep 86400";
    let mut running = stage.play(&["exec", "--budget-usd", "1", "--", "sh", "-c", program]);
    running.until("started");
    running
}

/// The ids that `ps` lists, oldest first.
fn ids(stage: &Stage) -> Vec<String> {
    let listed = stage.spinney(&["ps", "--json"]).json();
    let id = |tree: &Value| tree["tree"].as_str().unwrap().to_owned();
    listed.iter().map(id).collect()
}

#[test]
fn runs_of_exec_appear_in_top_when_they_begin_and_disappear_when_they_are_removed() {
    let stage = Stage::new();
    let first = run(&stage);
    let once = stage.spinney(&["top", "--once"]);
    assert_eq!(once.code, Some(0), "{}", once.err);
    assert!(once.out.contains("1 tree that has not ended, 1 running; 0 ended"), "{}", once.out);
    let mut top = stage.terminal(&["top"], 100, 24);
    top.until("1 running; 0 ended");
    top.until("$1.00");

    let second = run(&stage);
    top.until("2 trees that have not ended, 2 running; 0 ended");
    // The home gets a journal of its own.
    assert_eq!(stage.spinney(&["run", &stage.tree("", SAYS)]).code, Some(0));
    top.until("2 running; 1 ended");

    let ids = ids(&stage);
    assert_eq!(stage.spinney(&["cancel", &ids[1]]).code, Some(0));
    assert_eq!(second.end().code, Some(4));
    top.until("1 running; 2 ended");
    let shown = top.until("cancelled");
    assert!(shown.contains(&ids[1][..12]), "{shown}");
    assert_eq!(stage.spinney(&["rm", &ids[1]]).code, Some(0));
    top.until("1 running; 1 ended");
    let shown = top.until_hidden(&ids[1][..12]);
    assert!(shown.contains(&ids[0][..12]), "{shown}");

    // A process that is killed writes nothing more.
    first.kill();
    top.until("none running; 1 ended");
    top.until("interrupted");
    top.send("\u{3}");
    top.end();
}

#[test]
fn a_home_whose_only_run_was_removed_has_no_trees() {
    let stage = Stage::new();
    let ended = stage.spinney(&["exec", "--budget-usd", "1", "--", "true"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(stage.spinney(&["rm"]).code, Some(0));
    for list in [&["ps"][..], &["top", "--once"]] {
        let listed = stage.spinney(list);
        assert_eq!(listed.code, Some(0), "{}", listed.err);
        assert!(listed.out.contains("no trees yet"), "{}", listed.out);
    }
}

#[test]
fn a_run_that_cannot_be_read_does_not_hide_the_others() {
    let stage = Stage::new();
    for _ in 0..2 {
        assert_eq!(stage.spinney(&["exec", "--budget-usd", "1", "--", "true"]).code, Some(0));
    }
    let ids = ids(&stage);
    fs::write(stage.home().join("exec").join(&ids[0]).join("journal.sqlite3"), "no database").unwrap();
    let listed = stage.spinney(&["ps"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    assert!(listed.out.contains(&ids[1][..12]) && listed.err.contains("cannot read"), "{}", listed.err);
    let top = stage.spinney(&["top", "--once"]);
    assert_eq!(top.code, Some(0), "{}", top.err);
    assert!(top.out.contains("1 run of exec cannot be read: `spinney ps` says why"), "{}", top.out);
}
