//! The scenarios of `examples/scenarios`: each is a file that people can run, and a test of what it shows.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::test_folder::TestFolder;

fn scenario(name: &str) -> String {
    format!("{}/../../examples/scenarios/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == json!(kind)).collect()
}

/// S4: a task is delegated over three levels or more, and each answer is passed back up; one level too many is refused.
#[test]
fn s4_a_task_is_handed_down_three_hops_and_its_answer_comes_back_up() {
    let stage = TestFolder::new();
    let run = stage.spinney(&["run", &scenario("s04-nesting"), "--json"]);
    let result = run.result();
    assert_eq!(result["output"], json!("mayor: office: postman: child: delivered to the last house"));
    assert_eq!((run.code, &result["agents"]), (Some(0), &json!(4)));
    let events = run.json();
    let paths: Vec<&Value> = of_type(&events, "agent_spawned").iter().map(|event| &event["path"]).collect();
    assert_eq!(paths.last().unwrap(), &&json!("mayor/office/postman/child"));
    let refused = of_type(&events, "tool_answered")[0];
    assert_eq!(refused["is_error"], json!(true));
    assert_eq!(refused["body"]["text"], json!("depth limit 3 reached at depth 3: do this part yourself"));
}

/// S8, X7: two agents change one value. The second write that names an old version is refused with the version there
/// is, and nothing is lost; a role without the right to write is refused; `spinney shared` has the last versions with
/// authors, also after the end.
#[test]
fn s8_agents_work_on_one_value_and_lose_nothing() {
    let stage = TestFolder::new();
    let run = stage.spinney(&["run", &scenario("s08-shared-memory"), "--json"]);
    assert_eq!(
        (run.code, &run.result()["output"]),
        (Some(0), &json!("Both rows are planted.")),
        "{}",
        run.err
    );
    let events = run.json();
    let written: Vec<Value> = of_type(&events, "value_written")
        .iter()
        .map(|event| json!([event["name"], event["version"], event["by"], event["value"]["text"]]))
        .collect();
    let by = |agent: &str| json!({ "agent": agent });
    let wanted = [
        json!(["plan", 1, by("lead"), r#"{"oak":"free","elm":"free"}"#]),
        json!(["budget", 1, by("lead"), "null"]),
        json!(["plan", 2, by("ann"), r#"{"oak":"ann","elm":"free"}"#]),
        json!(["plan", 3, by("bob"), r#"{"oak":"ann","elm":"bob"}"#]),
    ];
    assert_eq!(written, wanted);
    let told = |agent: &str| {
        let results = stage.results(agent);
        results
            .iter()
            .map(|result| result["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    };
    insta::assert_snapshot!(told("bob"), @r#"
    `plan` has version 2, not 1: read it again, and write with `expect_version: 2`
    role `planter` may not write `budget`, only `lead` may: choose another key
    plan version 2, 26 bytes, written by ann:
    {"oak":"ann","elm":"free"}
    wrote plan version 3
    "#);
    insta::assert_snapshot!(told("lead"), @r#"
    wrote plan version 1
    wrote budget version 1
    The oaks stand.
    The elms stand.
    plan version 3, 25 bytes, written by bob:
    {"oak":"ann","elm":"bob"}
    budget version 1, 4 bytes, written by lead
    plan version 3, 25 bytes, written by bob
    "#);
    assert_eq!(stage.said(&["shared", "last", "plan"]), "{\"oak\":\"ann\",\"elm\":\"bob\"}\n");
    insta::assert_snapshot!(stage.said(&["shared"]), @r#"
    2 shared values (the tree has ended, its agents can no longer read them):
      budget  version 1, 4 bytes, by lead, just now
        null
      plan  version 3, 25 bytes, by bob, just now
        {"oak":"ann","elm":"bob"}
    "#);
    let lines = stage.spinney(&["shared", "--json"]).json();
    let fields =
        |line: &Value| json!([line["key"], line["version"], line["by"], line["cleared"], line["value"]]);
    let wanted = [
        json!(["budget", 1, "lead", true, null]),
        json!(["plan", 3, "bob", true, { "oak": "ann", "elm": "bob" }]),
    ];
    assert_eq!(lines.iter().map(fields).collect::<Vec<_>>(), wanted);
    let missing = stage.spinney(&["shared", "last", "plans"]);
    assert!(missing.code == Some(2) && missing.err.contains("did you mean `plan`?"), "{missing:?}");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// S9: killed in the middle and resumed, the tree has the answer and the cost of an undisturbed run.
#[test]
fn s9_a_tree_is_resumed_after_its_process_was_killed() {
    let stage = TestFolder::new();
    let whole = stage.spinney(&["run", &scenario("s09-resume"), "--json"]).result();
    let mut running = stage.play(&["run", &scenario("s09-resume")]);
    running.until("calls count_rings");
    running.kill();
    let resumed = stage.spinney(&["resume", "last", "--json"]);
    let result = resumed.result();
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert_eq!(
        result["output"],
        json!("All three are counted; the last says seventy rings (Count the ash.)")
    );
    for same in ["output", "spent", "agents", "state"] {
        assert_eq!(result[same], whole[same], "{same}");
    }
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// S24: every event at every level has the same trace id, and its path names the agent.
#[test]
fn s24_every_event_of_every_hop_carries_the_same_trace_id() {
    let stage = TestFolder::new();
    let run = stage.spinney(&["run", &scenario("s24-one-trace"), "--json"]);
    let (events, tree) = (run.json(), run.result()["tree"].clone());
    assert_eq!(run.result()["output"], json!("spinney"));
    let traces: BTreeSet<String> = events.iter().map(|event| event["tree"].to_string()).collect();
    assert_eq!(traces, BTreeSet::from([tree.to_string()]));
    let depths: BTreeSet<usize> = events
        .iter()
        .filter_map(|event| event["path"].as_str())
        .map(|path| path.split('/').count())
        .collect();
    assert!(depths.is_superset(&BTreeSet::from([1, 2, 3])), "{depths:?}");
    let places: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(places, (1..=places.len() as u64).collect::<Vec<_>>());
}

/// S27, O22 (without tenants): the journal has the whole chain; a replay gives the same state and output and calls
/// nothing, and one changed byte is detected and named.
#[test]
fn s27_o22_a_chain_is_audited_and_replayed_without_calling_anything() {
    let stage = TestFolder::new();
    let run = stage.spinney(&["run", &scenario("s27-audit"), "--json"]);
    let (events, result) = (run.json(), run.result());
    assert_eq!(result["output"], json!("It may be paid: number 42 is in the ledger"));
    assert_eq!(of_type(&events, "attempt_failed").len(), 1);
    assert_eq!(of_type(&events, "tool_answered").len(), 1);
    // The events from the journal are those that were printed during the run.
    let audit = stage.spinney(&["events", "last", "--json"]).json();
    assert_eq!(audit, events[..events.len() - 1]);
    // The replay needs no driver: neither the script nor the tree file is read.
    let hash = result["event_hash"].as_str().unwrap();
    let replay = stage.spinney(&["replay", "last", "--verify", "--expect", hash]);
    assert_eq!(replay.code, Some(0), "{}", replay.err);
    for part in
        [hash, "completed", "It may be paid: number 42 is in the ledger", "every decision was repeated"]
    {
        assert!(replay.out.contains(part), "{part}: {}", replay.out);
    }
    let after = stage.spinney(&["events", "last", "--json"]).json();
    assert_eq!(after, audit, "a replay changes nothing");
    let file = stage.home().join("journal.sqlite3");
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(12).position(|part| part == b"number 42 is").unwrap();
    bytes[at] = b'N';
    std::fs::write(&file, bytes).unwrap();
    let changed = stage.spinney(&["replay", "last", "--verify"]);
    assert_eq!(changed.code, Some(1));
    assert!(changed.err.contains("is damaged after event"), "{}", changed.err);
}
