//! Removing trees: what is removed with them, and what prevents it.

use crate::rewritten::into_older;
use crate::scripts::{HANGS, SAYS};
use crate::test_folder::{TestFolder, steady};

#[test]
fn a_removed_tree_leaves_nothing_behind() {
    let stage = TestFolder::new();
    stage.spinney(&["run", &stage.tree("", SAYS)]);
    stage.spinney(&["run", &stage.tree("", SAYS)]);
    into_older(&stage);
    let trees = || stage.spinney(&["ps", "--json"]).json();
    let gone = trees()[0]["tree"].as_str().unwrap().to_owned();
    let left = trees()[1]["tree"].as_str().unwrap().to_owned();
    let folders =
        |tree: &str| ["workspace", "trees"].map(|folder| stage.home().join(folder).join(tree).exists());
    assert_eq!((folders(&gone), folders(&left)), ([true; 2], [true; 2]));
    let removed = stage.spinney(&["rm", &gone]);
    assert_eq!((removed.code, removed.out.as_str()), (Some(0), ""));
    insta::assert_snapshot!(steady(&removed.err), @"removed tree [tree]");
    assert_eq!((folders(&gone), folders(&left)), ([false; 2], [true; 2]));
    assert_eq!(trees().len(), 1);
    let again = stage.spinney(&["rm", &gone]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("spinney ps"), "{}", again.err);
}

#[test]
fn a_running_tree_is_not_removed() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    let refused = stage.spinney(&["rm", "last", "--force"]);
    assert_eq!(refused.code, Some(2));
    insta::assert_snapshot!(steady(&refused.err), @"spinney: tree [tree] is running: `spinney cancel [id]` first");
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    assert_eq!(running.end().code, Some(4));
    assert_eq!(stage.spinney(&["rm", "last"]).code, Some(0));
}

/// A tree that waits or is halted could continue: without a terminal, removing it needs `--force`.
#[test]
fn an_unfinished_tree_is_removed_only_by_force() {
    let stage = TestFolder::new();
    let asks = "rules: [ { when: { turn: 1 }, call: [ { tool: ask_human, args: { question: Well? } } ] }, { say: done } ]";
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", asks)]).code, Some(5));
    let refused = stage.spinney(&["rm", "last"]);
    assert_eq!(refused.code, Some(2));
    insta::assert_snapshot!(steady(&refused.err), @"spinney: tree [id] has not ended (waiting); `spinney resume [id]` continues it; `spinney rm [id] --force` removes it anyway");
    assert_eq!(stage.spinney(&["ps", "--json"]).json().len(), 1);
    assert_eq!(stage.spinney(&["rm", "last", "--force"]).code, Some(0));
    assert_eq!(stage.spinney(&["ps", "--json"]).json().len(), 0);
}
