//! Signals: the first lets what runs end, the second ends everything at once; the tree goes on later.

use serde_json::json;

use crate::stage::{Stage, steady};

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
        let stage = Stage::new();
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
         go on   spinney resume [id]
         give up spinney cancel [id]
        "); }
        assert_eq!(stage.spinney(&["ps", "--json"]).result()["state"], json!("stopped"));
        let resumed = stage.spinney(&["resume", "last", "--json"]);
        assert_eq!((resumed.code, resumed.result()["output"].clone()), (Some(0), json!("I saw it")));
    }
}

#[test]
fn a_second_interrupt_ends_everything_at_once() {
    let stage = Stage::new();
    let mut running = stage.play(&["run", &stage.tree("", "rules: [ { hang: true } ]")]);
    running.until("starts");
    running.signal("INT");
    running.until_noted("Ctrl-C again ends it at once");
    running.signal("INT");
    running.until_noted("ended at once. Go on with: spinney resume");
    assert_eq!(running.end().code, Some(130));
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
}

#[test]
fn questions_that_are_open_are_listed_after_an_interrupt() {
    let stage = Stage::new();
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
        spinney answer [id] 2 TEXT
    then: spinney resume [id]
    ");
}
