//! A process is killed while it creates or removes a tree's folders. The next process that writes in the home settles
//! marked trees, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::rewritten::into_older;
use crate::scripts::SAYS;
use crate::test_folder::{Playing, TestFolder};

const ASKS: &str = "rules: [ { when: { turn: 1 }, call: [ { tool: ask_human, args: { question: \"Which?\" } } ] }, { say: done } ]";
/// Kills per command, each slightly later than the previous one.
const KILLS: u32 = 24;

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn trees(stage: &TestFolder) -> BTreeSet<String> {
    let listed = stage.spinney(&["ps", "--json"]).json();
    listed.iter().map(|tree| tree["tree"].as_str().unwrap().to_owned()).collect()
}

/// Opens the home for writing, and changes nothing.
fn open_to_write(stage: &TestFolder) {
    let opened = stage.spinney(&["checkpoint", "clean"]);
    assert_eq!((opened.code, opened.err.as_str()), (Some(0), ""));
}

/// The home has no folders but those of its trees, and nothing is marked.
fn check(stage: &TestFolder, when: &str) {
    open_to_write(stage);
    let trees = trees(stage);
    let copies = names(&stage.home().join("trees"));
    assert!(copies.is_subset(&trees), "{when}: {copies:?} {trees:?}");
    let workspaces = names(&stage.home().join("workspace"));
    assert!(workspaces.is_subset(&trees), "{when}: {workspaces:?} {trees:?}");
}

/// Kills a process shortly after something changed in a folder, or lets it end.
fn kill_after(mut running: Playing, folder: &Path, moments: u32) {
    let before = names(folder);
    let mut left = moments;
    while !running.has_ended() {
        if names(folder) != before {
            if left == 0 {
                break;
            }
            left -= 1;
        }
        std::thread::yield_now();
    }
    running.kill();
}

#[test]
fn what_is_marked_is_undone_if_the_journal_has_no_such_tree() {
    let stage = TestFolder::new();
    stage.spinney(&["run", &stage.tree("", SAYS)]);
    into_older(&stage);
    let there = trees(&stage).pop_first().unwrap();
    let (gone, begun, stray) = ["1", "2", "3"].map(|digit| digit.repeat(32)).into();
    let kept = |name: &str| stage.home().join("trees").join(name);
    let worked = |name: &str| stage.home().join("workspace").join(name);
    // A tree that never started or was just removed; one with incomplete files; one without a mark.
    for folder in
        [kept(&gone), worked(&gone), kept(&format!(".unfinished-{begun}")), kept(&stray), worked(&stray)]
    {
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("file"), "x").unwrap();
    }
    for tree in [&gone, &begun, &there] {
        fs::write(kept(&format!(".pending-{tree}")), "").unwrap();
    }
    fs::write(kept(".pending-notes"), "mine").unwrap();
    open_to_write(&stage);
    let left: BTreeSet<String> = [".pending-notes".to_owned(), there.clone(), stray.clone()].into();
    assert_eq!(names(&stage.home().join("trees")), left);
    assert_eq!(names(&stage.home().join("workspace")), [there, stray].into());
}

#[test]
fn a_killed_run_leaves_no_folder_without_a_tree() {
    let stage = TestFolder::new();
    let tree = stage.tree("", SAYS);
    stage.spinney(&["run", &tree]);
    for moments in 0..KILLS {
        kill_after(stage.play(&["run", &tree]), &stage.home().join("workspace"), moments);
        check(&stage, &format!("run, {moments}"));
    }
}

#[test]
fn a_killed_removal_leaves_no_folder_without_a_tree() {
    let stage = TestFolder::new();
    let tree = stage.tree("", SAYS);
    stage.spinney(&["run", &tree]);
    into_older(&stage);
    for moments in 0..KILLS {
        let id = stage.spinney(&["run", &tree, "--json"]).result()["tree"].as_str().unwrap().to_owned();
        let outputs: PathBuf = stage.home().join("workspace").join(&id).join("lead/outputs");
        for number in 0..50 {
            fs::write(outputs.join(number.to_string()), "x").unwrap();
        }
        let watched = stage.home().join(if moments % 2 == 0 { "trees" } else { "workspace" });
        kill_after(stage.play(&["rm", &id]), &watched, moments / 2);
        check(&stage, &format!("rm, {moments}"));
    }
}

#[test]
fn a_killed_branch_leaves_no_folder_without_a_tree() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", ASKS)]).code, Some(5));
    assert_eq!(stage.spinney(&["checkpoint", "make", "lead", "--name", "here"]).code, Some(0));
    into_older(&stage);
    for moments in 0..KILLS {
        let branch = stage.play(&["checkpoint", "branch", "here", "--budget-usd", "1"]);
        kill_after(branch, &stage.home().join("trees"), moments);
        check(&stage, &format!("branch, {moments}"));
        assert_eq!(names(&stage.home().join("trees")), trees(&stage), "{moments}");
    }
}
