//! Two terminals: one runs a tree, the other follows it. Either may die at any time; no line is lost or repeated.

use crate::test_folder::TestFolder;

const LOOKS: &str = "
rules:
  - when: { turn: 7 }
    say: Enough.
  - call: [ { tool: look, args: { turn: '{{ turn }}' } } ]
tools: { look: { repeatable: true, think_ms: 60, say: it } }
";

/// Lines without their times, which are counted from the first event that is shown.
fn numbers(out: &str) -> Vec<u64> {
    out.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

/// S7, O16: a follower leaves and comes back, and the process that runs the tree dies and another one continues.
#[test]
fn s7_o16_a_follower_loses_no_line_when_processes_die() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("look", LOOKS)]);
    running.until("calls look");
    let mut leaves = stage.play(&["events", "last", "--follow"]);
    let mut stays = stage.play(&["events", "last", "--follow"]);
    leaves.until("calls look");
    stays.until("calls look");
    // The follower dies, and returns after the last line that it saw.
    let seen = leaves.said();
    leaves.kill();
    running.until("calls look");
    running.kill();
    let resumed = stage.play(&["resume", "last"]);
    let from = numbers(&seen).last().unwrap() + 1;
    let back = stage.play(&["events", "last", "--follow", "--from", &from.to_string()]);
    assert_eq!(resumed.end().code, Some(0));
    let (stays, back) = (stays.end(), back.end());
    assert_eq!((stays.code, back.code), (Some(0), Some(0)), "{}{}", stays.err, back.err);
    let whole = stage.spinney(&["events", "last"]).out;
    assert_eq!(stays.out, whole);
    assert_eq!(seen + &back.out, whole);
    assert_eq!(numbers(&whole), (1..=numbers(&whole).len() as u64).collect::<Vec<_>>());
}

#[test]
fn only_what_was_asked_for_is_shown() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("look", LOOKS)]).code, Some(0));
    let tools = stage.spinney(&["events", "last", "--topic", "tool", "--json", "--follow"]);
    assert!(tools.json().iter().all(|event| event["topic"] == "tool.call"), "{}", tools.out);
    assert!(tools.json().len() >= 18, "{}", tools.out);
    let spawns = stage.spinney(&["events", "last", "--topic", "agent.spawn"]);
    assert_eq!(spawns.out.lines().count(), 1);
    let wrong = stage.spinney(&["events", "last", "--topic", "no topic"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("is not a valid topic"), "{}", wrong.err);
}

/// O1: each line of JSON carries tree, agent, thread, caller, start and end.
#[test]
fn o1_each_line_has_its_event_context() {
    let stage = TestFolder::new();
    let id = stage.spinney(&["run", &stage.tree("look", LOOKS), "--json"]).result()["tree"].clone();
    for event in stage.spinney(&["events", "last", "--json", "--agent", "lead"]).json() {
        assert_eq!(
            (&event["tree"], &event["thread"], &event["agent"]),
            (&id, &id, &"lead".into()),
            "{event}"
        );
        assert!(event["start"].as_u64() <= event["at"].as_u64(), "{event}");
        let ends = ["call_ended", "agent_ended"].contains(&event["type"].as_str().unwrap_or_default());
        assert_eq!(event["end"].is_u64(), ends, "{event}");
    }
}
