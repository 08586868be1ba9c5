//! Signals: after the first, running calls may end; the second ends the process at once. The tree can be resumed.

use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;

use crate::test_folder::{TestFolder, steady};
use crate::upstream::{Reply, Upstream};

const LOOKS: &str = "
rules:
  - when: { turn: 1 }
    call: [ { tool: look } ]
  - say: 'I saw {{ last }}'
tools: { look: { think_ms: 800, say: it } }
";

#[test]
fn one_interrupt_lets_what_runs_end_and_the_tree_can_be_resumed() {
    for signal in ["INT", "TERM"] {
        let stage = TestFolder::new();
        let mut running = stage.play(&["run", &stage.tree("look", LOOKS)]);
        running.until("calls look");
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(130), "{}", ended.err);
        let block = ended.out.split_once("\n\nstopped").unwrap().1;
        insta::allow_duplicates! { insta::assert_snapshot!(steady(block), @"
        after 0.00s
         spent   $0.0000195 · 74 tokens · 1 step · 1 tool call · 0 retries
         agents  1
         tree    [tree]
         look    spinney events [id]
         next    spinney resume [id]
         give up spinney cancel [id]
        "); }
        assert_eq!(stage.spinney(&["ps", "--json"]).result()["state"], json!("stopped"));
        let resumed = stage.spinney(&["resume", "last", "--json"]);
        assert_eq!((resumed.code, resumed.result()["output"].clone()), (Some(0), json!("I saw it")));
    }
}

#[test]
fn a_second_interrupt_ends_everything_at_once() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", "rules: [ { hang: true } ]")]);
    running.until("starts");
    running.signal("INT");
    running.until_noted("Press Ctrl-C again to stop at once");
    running.signal("INT");
    running.until_noted("stopped at once. Continue with: spinney resume");
    assert_eq!(running.end().code, Some(130));
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
}

#[test]
fn questions_that_are_open_are_listed_after_an_interrupt() {
    let stage = TestFolder::new();
    let script = "
rules:
  - when: { turn: 1 }
    call: [ { tool: ask_human, args: { question: Which colour? } }, { tool: look } ]
  - say: done
tools: { look: { think_ms: 800, say: it } }
";
    let mut running = stage.play(&["run", &stage.tree("ask_human, look", script)]);
    running.until("calls look");
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    let questions = &ended.out[ended.out.find("1 question").unwrap()..];
    insta::assert_snapshot!(steady(questions), @"
    1 question to answer:
      lead asks: Which colour?
        spinney answer [id] 2 'your answer'
    then: spinney resume [id]
    ");
}

/// The only worker thread waits in the journal for a lock that this test holds. Before signals had their own thread,
/// they were not handled in this state.
#[test]
fn two_signals_end_the_process_while_its_workers_are_blocked() {
    for (first, second) in [("INT", "INT"), ("TERM", "TERM"), ("TERM", "INT")] {
        let stage = TestFolder::new();
        let script = "rules: [ { call: [ { tool: look } ] } ]\ntools: { look: { think_ms: 5, say: it } }";
        let one_worker = [("TOKIO_WORKER_THREADS", "1")];
        let mut running = stage.play_in(&["run", &stage.tree("look", script)], &one_worker);
        running.until("calls look");
        let lock = Connection::open(stage.home().join("journal.sqlite3")).unwrap();
        lock.busy_timeout(Duration::from_secs(5)).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        // The tree blocks at its next event, five milliseconds later.
        running.signal(first);
        running.until_noted("Press Ctrl-C again to stop at once");
        running.signal(second);
        running.until_noted("stopped at once. Continue with: spinney resume");
        let ended = running.end();
        assert_eq!(ended.code, Some(130), "{}", ended.err);
        assert!(lock.execute_batch("ROLLBACK").is_ok(), "the lock was held to the end");
        // If it had waited for the lock, it would have failed with `busy`.
        assert!(!ended.err.contains("busy"), "{}", ended.err);
    }
}

/// Issue 34: `run --json | head -3` waited in silence for running calls, and only noticed at the next event.
#[test]
fn a_run_that_nobody_reads_stops_in_good_order() {
    for style in [&["--json"][..], &[]] {
        let stage = TestFolder::new();
        let upstream = Upstream::new(vec![Reply::writes().late(), Reply::says("done", &[])]);
        let tree = stage.tree_on(&upstream);
        let mut running = stage.play(&[&["run", &tree], style].concat());
        upstream.was_asked(1);
        running.turn_away();
        // The call still runs, and no event comes before its end.
        running.until_noted("stopping, because the reader of the output went away: running calls finish");
        upstream.release();
        running.until_noted("the tree is stopped; continue with: spinney resume");
        assert_eq!(running.end().code, Some(141));
        assert_eq!(stage.spinney(&["ps", "--json"]).result()["state"], json!("stopped"));
        let resumed = stage.spinney(&["resume", "--json"]);
        assert_eq!((resumed.code, &resumed.result()["output"]), (Some(0), &json!("done")), "{}", resumed.err);
        assert_eq!(upstream.asked().len(), 2, "the call that ran was not repeated");
    }
}

/// It counts as the first Ctrl-C: the next one ends the process at once.
#[test]
fn one_interrupt_ends_a_run_that_nobody_reads() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", "rules: [ { hang: true } ]")]);
    running.until("starts");
    running.turn_away();
    running.until_noted("Press Ctrl-C to stop at once");
    running.signal("INT");
    running.until_noted("stopped at once. Continue with: spinney resume");
    assert_eq!(running.end().code, Some(130));
}

/// Commands that only look end when their output has no reader, and the tree continues.
#[test]
fn who_follows_a_tree_ends_with_its_reader() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", "rules: [ { hang: true } ]")]);
    running.until("starts");
    for snapshot in [&["events", "--follow"][..], &["attach", "--plain"]] {
        let mut looking = stage.play(snapshot);
        looking.until("starts");
        looking.turn_away();
        let ended = looking.end();
        assert_eq!((ended.code, ended.err.as_str()), (Some(141), ""), "{snapshot:?}");
    }
    assert_eq!(stage.spinney(&["ps", "--json"]).result()["state"], json!("running"));
    running.kill();
}

/// A template that would grow forever is refused when it is read.
#[test]
fn a_script_that_would_never_end_is_refused_before_anything_runs() {
    let stage = TestFolder::new();
    let script = "rules: [ { say: \"{{ [[1]*100000000]*100000000 }}\" } ]";
    let ended = stage.spinney(&["run", &stage.tree("", script)]);
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    let problem = "tree.script.yaml:1:17: rule 1: `say`: line 1 column 4 of the template: `*` is not part of the scripts' language: it repeats texts and lists; write the number";
    assert!(ended.err.contains(problem), "{}", ended.err);
}
