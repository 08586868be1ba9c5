//! Lists and events, also read by a second process while the first one writes.

use serde_json::json;

use crate::scripts::{HANGS, SAYS};
use crate::test_folder::{TestFolder, steady};

#[test]
fn trees_are_listed_with_their_state() {
    let stage = TestFolder::new();
    stage.spinney(&["run", &stage.tree("", SAYS)]);
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    let listed = stage.spinney(&["ps"]);
    insta::assert_snapshot!(steady(&listed.out), @"
    TREE          STATE      NAME  EVENTS  STARTED   LAST CHANGE
    [id]  running    test       4  just now  just now
    [id]  completed  test       6  just now  just now
    ");
    running.kill();
    let states = |ended: crate::test_folder::Ended| {
        ended.json().iter().map(|tree| tree["state"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(states(stage.spinney(&["ps", "--json"])), [json!("interrupted"), json!("completed")]);
    assert!(stage.spinney(&["ps"]).err.contains("spinney resume"));
    stage.spinney(&["cancel", "last"]);
    assert_eq!(states(stage.spinney(&["ps", "--json"])), [json!("cancelled"), json!("completed")]);
}

#[test]
fn events_can_be_read_while_another_process_writes() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    let events = stage.spinney(&["events", "last", "--json"]);
    let types: Vec<_> = events.json().iter().map(|event| event["type"].clone()).collect();
    assert_eq!(types, ["tree_started", "agent_spawned", "call_asked", "call_started"]);
    running.kill();
}

#[test]
fn events_are_shown_from_a_number_on_and_for_one_agent() {
    let stage = TestFolder::new();
    stage.spinney(&["run", &stage.tree("", SAYS)]);
    insta::assert_snapshot!(steady(&stage.spinney(&["events", "last", "--from", "4"]).out), @"
    4    0.00s  lead  starts model fast, attempt 1: $0.02001125, 16,045 tokens, 1 step held
    5    0.00s  lead  answers: done  [16,045 tokens held, 46 used: 45 in, 1 out]
    6    0.00s  lead  completed; spent $0.0000125, 46 tokens, 1 step
    ");
    let all = stage.spinney(&["events", "last", "--agent", "lead"]);
    assert_eq!((all.code, all.out.lines().count()), (Some(0), 5));
    let path = stage.spinney(&["events", "last", "--agent", "above/lead"]);
    assert_eq!((path.code, path.out.as_str()), (Some(2), ""), "{}", path.err);
    assert!(path.err.contains("`lead`"), "{}", path.err);
    let none = stage.spinney(&["events", "last", "--from", "99"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""));
}

#[test]
fn a_tree_is_named_by_any_unique_beginning_of_its_id() {
    let stage = TestFolder::new();
    let id = |ended: crate::test_folder::Ended| ended.result()["tree"].as_str().unwrap().to_owned();
    let first = id(stage.spinney(&["run", &stage.tree("", SAYS), "--json"]));
    let second = id(stage.spinney(&["run", &stage.tree("", SAYS), "--json"]));
    let shared = first.chars().zip(second.chars()).take_while(|(a, b)| a == b).count();
    let replayed = stage.spinney(&["events", &first[..=shared], "--json"]);
    assert_eq!(replayed.json()[0]["tree"], json!(first));
    assert_eq!(stage.spinney(&["events", "last", "--json"]).json()[0]["tree"], json!(second));
    let unclear = stage.spinney(&["events", &first[..shared]]);
    assert_eq!(unclear.code, Some(2));
    assert!([&first, &second].iter().all(|id| unclear.err.contains(*id)), "{}", unclear.err);
}

#[test]
fn two_homes_know_nothing_of_each_other() {
    let (one, two) = (TestFolder::new(), TestFolder::new());
    let mut first = one.play(&["run", &one.tree("", HANGS)]);
    let mut second = two.play(&["run", &two.tree("", HANGS)]);
    first.until("starts");
    second.until("starts");
    assert_eq!([&one, &two].map(|stage| stage.spinney(&["ps", "--json"]).json().len()), [1, 1]);
    assert_eq!(one.spinney(&["cancel", "last"]).code, Some(0));
    assert_eq!(first.end().code, Some(4));
    assert_eq!(two.spinney(&["ps", "--json"]).result()["state"], json!("running"));
    second.kill();
}

#[test]
fn a_tree_that_runs_is_not_resumed_by_a_second_process() {
    let stage = TestFolder::new();
    let tree = stage.tree("", HANGS);
    let mut running = stage.play(&["run", &tree]);
    running.until("starts");
    let refused = stage.spinney(&["resume", "last"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(6), ""));
    let pid = running.pid().to_string();
    assert!(refused.err.contains(&format!("process {pid} has this home open")), "{}", refused.err);
    running.kill();
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let stage = TestFolder::new();
    let script = "rules: [ { when: { turn: 1 }, call: [ { tool: look } ] }, { when: { turn: 2 }, call: [ { tool: look } ] }, { say: done } ]\n\
                  tools: { look: { think_ms: 300, say: seen } }";
    let mut running = stage.play(&["run", &stage.tree("look", script)]);
    running.until("starts");
    running.turn_away();
    let ended = running.end();
    assert_eq!(ended.code, Some(141));
    assert!(ended.err.contains("spinney resume") && !ended.err.contains("panic"), "{}", ended.err);
    let resumed = stage.spinney(&["resume", "last", "--json"]);
    assert_eq!(resumed.result()["output"], json!("done"));
    let mut long = stage.play(&["events", "last"]);
    long.until("started");
    long.turn_away();
    let ended = long.end();
    assert!(!ended.err.contains("panic"), "{}", ended.err);
}
