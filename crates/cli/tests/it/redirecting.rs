//! `redirect` and `charge`: a new instruction for an agent that works, and spending from outside.

use serde_json::json;

use crate::test_folder::{Playing, TestFolder};

/// The lead waits for a helper that hangs; after an instruction it reports.
const HANGS: &str = "
rules:
  - when: { agent: helper }
    call: [ { tool: hang } ]
  - when: { agent: lead, last_contains: two }
    say: 'I heard: compare two.'
  - when: { agent: lead, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: one, goal: Compare all. } } ]
  - say: 'The end: {{ last }}'
tools: { hang: { hang: true } }
";

fn hangs(stage: &TestFolder) -> Playing {
    stage.file("hangs.script.yaml", HANGS);
    let tree = stage.file(
        "hangs.yaml",
        "name: hangs
goal: Compare.
budget: { cost_usd: 1 }
models:
  fast: { provider: scripted, script: hangs.script.yaml, price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 } }
agents:
  lead: { model: fast, tools: [spawn_agent, hang], subagents: [helper] }
  helper: { model: fast, tools: [hang] }
entry: lead
",
    );
    let mut running = stage.play(&["run", &tree, "--plain"]);
    running.until("one calls hang");
    running
}

/// O18: a person redirects the planner while an agent below it works. `--now` stops that, the instruction reaches the
/// planner, and what was done stays.
#[test]
fn o18_a_redirected_planner_stops_what_runs_and_follows_the_instruction() {
    for words in [
        &["redirect", "Compare two.", "--now"][..],
        &["redirect", "lead", "Compare two.", "--now"],
        &["redirect", "last", "Compare two.", "--now"],
        &["redirect", "last", "lead", "Compare two.", "--now"],
    ] {
        let stage = TestFolder::new();
        let running = hangs(&stage);
        let told = stage.spinney(words);
        assert_eq!(told.code, Some(0), "{words:?}: {}", told.err);
        assert!(told.err.contains("redirected `lead`: what it had running is stopped"), "{}", told.err);
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{words:?}: {} {}", ended.out, ended.err);
        assert!(ended.out.contains("I heard: compare two."), "{}", ended.out);
        assert!(stage.said(&["events"]).contains("Compare two."));
    }
}

/// Without `--now` what runs finishes first: the instruction waits for it.
#[test]
fn o18_a_redirect_after_the_step_lets_what_runs_finish() {
    let stage = TestFolder::new();
    let running = hangs(&stage);
    let told = stage.spinney(&["redirect", "last", "lead", "Compare two.", "--after-step"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains("before its next turn"), "{}", told.err);
    let helper = stage.spinney(&["tree", "--json"]).json();
    let helper = helper.iter().find(|agent| agent["agent"] == "one").unwrap();
    assert_ne!(helper["state"], json!("cancelled"), "{helper}");
    assert_eq!(stage.spinney(&["cancel", "last", "one"]).code, Some(0));
    let ended = running.end();
    assert!(ended.out.contains("I heard: compare two."), "{}", ended.out);
}

#[test]
fn a_redirect_of_nobody_is_refused() {
    let stage = TestFolder::new();
    let running = hangs(&stage);
    let nobody = stage.spinney(&["redirect", "last", "nobody", "Compare two."]);
    assert_eq!(nobody.code, Some(2), "{}", nobody.err);
    let both = stage.spinney(&["redirect", "Compare two.", "--now", "--after-step"]);
    assert_eq!(both.code, Some(2));
    assert_eq!(stage.spinney(&["redirect", "last", ""]).code, Some(2));
    assert_eq!(stage.spinney(&["cancel"]).code, Some(0));
    assert_eq!(running.end().code, Some(4));
}

/// What was spent outside is booked at once at the agent and everything above it, to the nano-dollar, and a tree that has
/// ended takes no more.
#[test]
fn a_charge_is_booked_at_an_agent_and_above_it() {
    let stage = TestFolder::new();
    let running = hangs(&stage);
    let cost = |table: &str, name: &str| {
        let costs = stage.spinney(&["costs", "--json"]).result();
        let rows = costs[table].as_array().unwrap().clone();
        let row = rows.into_iter().find(|row| row["name"] == name);
        row.map_or(0, |row| row["spent"]["cost_nanos"].as_u64().unwrap())
    };
    let before = cost("agents", "one");
    let told = stage.spinney(&["charge", "last", "one", "--usd", "0.123456789", "--note", "a search"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains("booked $0.123456789") && told.err.contains("`one`"), "{}", told.err);
    assert_eq!(cost("agents", "one") - before, 123_456_789);
    assert_eq!(cost("models", "(charged from outside)"), 123_456_789);
    // It is spent already: no ceiling refuses it.
    assert_eq!(stage.spinney(&["charge", "--usd", "5"]).code, Some(0));
    assert_eq!(cost("models", "(charged from outside)"), 5_123_456_789);
    assert!(stage.said(&["events"]).contains("a search"));
    assert_eq!(stage.spinney(&["charge"]).code, Some(2));
    assert_eq!(stage.spinney(&["cancel"]).code, Some(0));
    running.end();
    assert_eq!(stage.spinney(&["charge", "--usd", "1"]).code, Some(2));
}
