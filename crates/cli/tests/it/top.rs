//! `spinney top`: the trees of a home and the runs of `exec` in it, as they come and go.

use std::fs;

use serde_json::{Value, json};

use crate::scripts::{ASKS, HANGS, SAYS};
use crate::test_folder::{NO_SERVER, Playing, TestFolder, steady};

/// A run of `exec` whose program does not end on its own.
fn run(stage: &TestFolder) -> Playing {
    let program = "echo started; exec sleep 86400";
    let mut running = stage.play_in(&["exec", "--budget-usd", "1", "--", "sh", "-c", program], &NO_SERVER);
    running.until("started");
    running
}

/// The ids that `ps` lists, newest first.
fn ids(stage: &TestFolder) -> Vec<String> {
    let listed = stage.spinney(&["ps", "--json"]).json();
    let id = |tree: &Value| tree["tree"].as_str().unwrap().to_owned();
    listed.iter().map(id).collect()
}

#[test]
fn runs_of_exec_appear_in_top_when_they_begin_and_disappear_when_they_are_removed() {
    let stage = TestFolder::new();
    let first = run(&stage);
    let once = stage.spinney(&["top", "--once"]);
    assert_eq!(once.code, Some(0), "{}", once.err);
    assert!(once.out.contains("1 tree that has not ended, 1 running; 0 ended"), "{}", once.out);
    let mut top = stage.terminal(&["top"], 100, 24);
    top.until("1 running; 0 ended");
    top.until("$1.00");

    let second = run(&stage);
    top.until("2 trees that have not ended, 2 running; 0 ended");
    // The home gets its own journal.
    assert_eq!(stage.spinney(&["run", &stage.tree("", SAYS)]).code, Some(0));
    top.until("2 running; 1 ended");

    let [_, ended, begun] = ids(&stage).try_into().unwrap();
    let ids: [String; 2] = [begun, ended];
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
    let stage = TestFolder::new();
    let ended = stage.play_in(&["exec", "--budget-usd", "1", "--", "true"], &NO_SERVER).end();
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
    let stage = TestFolder::new();
    for _ in 0..2 {
        let ended = stage.play_in(&["exec", "--budget-usd", "1", "--", "true"], &NO_SERVER).end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }
    let ids = ids(&stage);
    fs::write(stage.home().join("runs").join(&ids[0]).join("journal.sqlite3"), "no database").unwrap();
    let listed = stage.spinney(&["ps"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    assert!(listed.out.contains(&ids[1][..12]) && listed.err.contains("cannot read"), "{}", listed.err);
    let top = stage.spinney(&["top", "--once"]);
    assert_eq!(top.code, Some(0), "{}", top.err);
    assert!(top.out.contains("1 run of exec cannot be read: `spinney ps` says why"), "{}", top.out);
}

/// Issue 34: `top` had no keys. The arrows choose a tree, Enter follows it, `c` cancels it after a question, `q` leaves.
#[test]
fn keys_of_top_choose_a_tree_follow_it_and_cancel_it() {
    let stage = TestFolder::new();
    let waiting = stage.spinney(&["run", &stage.tree("ask_human", ASKS), "--json"]);
    assert_eq!(waiting.code, Some(5), "{}", waiting.err);
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    let ids: Vec<String> = ids(&stage).iter().map(|id| id[..12].to_owned()).collect();
    let [newest, oldest] = ids.as_slice() else { panic!("{ids:?}") };
    let mut top = stage.terminal(&["top"], 100, 24);
    let shown = top.until("q quit");
    assert!(shown.contains(&format!("▸  {newest}  running")), "{shown}");
    // Not beyond the first and the last.
    top.send("\u{1b}[A\u{1b}[B\u{1b}[B");
    let shown = top.until(&format!("▸  {oldest}  waiting"));
    insta::assert_snapshot!("chosen", steady(&shown));
    top.send("c");
    let asked = format!("cancel {oldest} test, with all its agents? [y/N]");
    top.until_visible(&asked);
    // Enter is not a yes.
    top.send("\r");
    top.until_hidden(&asked);
    top.until_keys();
    top.send("c");
    top.until_visible(&asked);
    top.send("y");
    top.until(&format!("cancelled {oldest}"));
    let shown = top.until("1 tree that has not ended, 1 running; 1 ended");
    assert!(shown.contains(&format!("▸  {oldest}  cancelled")), "{shown}");
    // What is refused is told, and nothing else happens.
    top.send("c");
    top.until_visible(&asked);
    top.send("y");
    top.until("the tree has ended");
    top.send("\u{1b}OA");
    top.until(&format!("▸  {newest}  running"));
    top.send("\r");
    let followed = top.until("● lead");
    assert!(followed.contains(newest) && followed.contains("asks model fast"), "{followed}");
    top.send("\u{3}");
    assert_eq!(top.end().code, Some(130));
    assert_eq!(stage.spinney(&["ps", "--json"]).json()[0]["state"], json!("running"));
    let mut again = stage.terminal(&["top"], 100, 24);
    again.until("q quit");
    again.send("q");
    assert_eq!(again.end().code, Some(0));
    running.kill();
}

/// A yes counts only after the question was shown: what was typed together with `c` is dropped.
#[test]
fn a_yes_before_the_question_cancels_nothing() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", ASKS)]).code, Some(5));
    let mut top = stage.terminal(&["top"], 100, 24);
    top.until("q quit");
    top.send("cy");
    top.until("with all its agents? [y/N]");
    top.send("n");
    top.until("q quit");
    top.send("q");
    assert_eq!(top.end().code, Some(0));
    assert_eq!(stage.spinney(&["ps", "--json"]).json()[0]["state"], json!("waiting"));
}

/// A runner that accepts connections and says nothing does not block `top`.
#[test]
fn top_can_be_left_while_a_runner_does_not_answer() {
    for (key, code) in [("\u{3}", 130), ("q", 0)] {
        let stage = TestFolder::new();
        let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
        running.until("starts");
        running.signal("STOP");
        let mut top = stage.terminal(&["top"], 100, 24);
        top.until_keys();
        top.send(key);
        let ended = top.end();
        assert_eq!(ended.code, Some(code));
        // It did not wait until it could draw.
        assert!(!ended.out.contains("not ended"), "{}", ended.out);
        running.kill();
    }
}

/// A terminal that does not control us gives no keys, and shows the trees anyway.
#[test]
fn top_runs_at_a_terminal_that_does_not_control_it() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("", SAYS)]).code, Some(0));
    let mut top = stage.terminal_apart(&["top"], 100, 24);
    let shown = top.until("none running; 1 ended");
    assert!(!shown.contains("q quit"), "{shown}");
    top.signal("TERM");
    assert_eq!(top.end().code, Some(130));
}

#[test]
fn top_lists_trees_for_programs() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("", SAYS)]).code, Some(0));
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    let lines = stage.spinney(&["top", "--json"]).json();
    running.kill();
    let of = |key: &str| lines.iter().map(|line| line[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("state"), [json!("running"), json!("completed")]);
    assert_eq!(of("is_running"), [json!(true), json!(false)]);
    assert_eq!((of("agents"), of("living")), (vec![json!(1); 2], vec![json!(1), json!(0)]));
    assert_eq!(lines[0]["limit_nanos"], json!(1_000_000_000));
    assert!(lines[0]["held_nanos"].as_u64().is_some_and(|held| held > 0), "{}", lines[0]);
    assert_eq!(lines[0]["now"], json!({ "agent": "lead", "doing": "asks model fast" }));
    assert_eq!(lines[1]["spent"]["steps"], json!(1));
}
