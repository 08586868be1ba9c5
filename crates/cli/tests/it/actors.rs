//! Who asked, and within which trace: from the command line to the journal and back to `events`.

use serde_json::{Value, json};

use crate::exec::{exec_in, used};
use crate::scripts::SAYS;
use crate::test_folder::{Ended, TestFolder};
use crate::upstream::Upstream;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn events(stage: &TestFolder) -> Vec<Value> {
    stage.spinney(&["events", "last", "--json"]).json()
}

/// Who asked for the events of this type.
fn actors(events: &[Value], kind: &str) -> Vec<Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| event["actor"].clone()).collect()
}

fn run(stage: &TestFolder, environment: &[(&str, &str)]) -> Ended {
    let ended = stage.play_in(&["run", &stage.tree("", SAYS), "--json"], environment).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

#[test]
fn a_run_is_a_persons_and_has_the_trace_of_its_environment() {
    let stage = TestFolder::new();
    let printed = run(&stage, &[("TRACEPARENT", TRACE)]);
    for events in [printed.json(), events(&stage)] {
        assert_eq!((&events[0]["type"], &events[0]["trace"]), (&json!("tree_started"), &json!(TRACE)));
        assert_eq!(actors(&events, "tree_started"), ["person"]);
        assert_eq!(actors(&events, "call_ended"), [Value::Null], "nobody asked for it");
    }
    let text = stage.spinney(&["events", "last"]).out;
    let first = text.lines().next().unwrap();
    assert!(first.ends_with(", in trace 4bf92f3577b34da6a3ce929d0e0e4736"), "{first}");
    assert_eq!(stage.spinney(&["replay", "--verify", "last"]).code, Some(0));
}

#[test]
fn a_trace_that_cannot_be_read_is_left_out_and_only_the_log_says_so() {
    let stage = TestFolder::new();
    for bad in ["", "1234", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"] {
        let quiet = run(&stage, &[("TRACEPARENT", bad)]);
        assert!(!quiet.err.contains("TRACEPARENT"), "{}", quiet.err);
        assert_eq!(events(&stage)[0].get("trace"), None, "{bad}");
    }
    let logged = run(&stage, &[("TRACEPARENT", "1234"), ("SPINNEY_LOG", "warn")]).err;
    assert!(logged.contains(" WARN ") && logged.contains("TRACEPARENT is ignored"), "{logged}");
    assert!(logged.contains("`1234` is not a valid traceparent"), "{logged}");
    assert_eq!(events(&stage)[0].get("trace"), None);
}

/// The person starts the run; what its program does reaches the tree through the gateway.
#[test]
fn a_run_of_exec_is_a_persons_and_its_calls_are_the_gateways() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10)]));
    let ended =
        exec_in(&stage, &upstream, &["--budget-usd", "2"], "call 10 one", &[("TRACEPARENT", TRACE)]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let events = events(&stage);
    assert_eq!(events[0]["trace"], TRACE);
    assert_eq!(actors(&events, "tree_started"), ["person"]);
    assert_eq!(actors(&events, "model_added"), ["gateway"]);
    assert_eq!(actors(&events, "call_asked"), ["gateway"]);
    assert_eq!(actors(&events, "agent_ended"), ["gateway"]);
}

/// A tree without a process is changed through another path than one that runs.
#[test]
fn whoever_steers_from_the_command_line_is_a_person() {
    let stage = TestFolder::new();
    let asks = "rules: [ { when: { turn: 1 }, call: [ { tool: ask_human, args: { question: Well? } } ] }, { say: done } ]";
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", asks)]).code, Some(5));
    assert_eq!(stage.spinney(&["send", "lead", "Hello."]).code, Some(0));
    assert_eq!(stage.spinney(&["answer", "blue"]).code, Some(0));
    let resumed = stage.spinney(&["resume", "last"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let events = events(&stage);
    let sent = events.iter().find(|event| event["type"] == "message_sent").unwrap();
    assert_eq!((&sent["from"], &sent["actor"]), (&json!("person"), &json!("person")));
    let answered = events.iter().find(|event| event["outcome"]["end"] == "answered").unwrap();
    assert_eq!(answered["actor"], "person");
    let asked: Vec<&Value> =
        events.iter().map(|event| &event["actor"]).filter(|actor| !actor.is_null()).collect();
    assert!(asked.iter().all(|actor| **actor == "person"), "{asked:?}");
}
