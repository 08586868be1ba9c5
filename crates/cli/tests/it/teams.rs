//! Teams of `examples/scenarios`: tasks in parallel, gathered, timed out, and in a circle.

use serde_json::{Value, json};

use crate::test_folder::{Ended, TestFolder};

fn run(stage: &TestFolder, name: &str) -> Ended {
    let file = format!("{}/../../examples/scenarios/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let ended = stage.spinney(&["run", &file, "--json"]);
    assert_eq!(ended.code, Some(0), "{} {}", ended.out, ended.err);
    ended
}

/// The ids of the agents in events of this type, in order.
fn whom<'a>(events: &'a [Value], kind: &str) -> Vec<&'a str> {
    let of_kind = events.iter().filter(|event| event["type"] == json!(kind));
    of_kind.map(|event| event["agent"].as_str().unwrap()).collect()
}

/// The number of the event of this type for an agent.
fn when(events: &[Value], kind: &str, agent: &str) -> u64 {
    let is = |event: &&Value| event["type"] == json!(kind) && event["agent"] == json!(agent);
    events.iter().find(is).unwrap()["seq"].as_u64().unwrap()
}

fn texts(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["text"].as_str().unwrap()).collect()
}

/// S2: three in parallel; the lead reads them in the order of the calls, whichever ends first.
#[test]
fn s2_children_of_one_answer_run_at_once_and_are_read_in_the_order_of_the_calls() {
    let stage = TestFolder::new();
    let run = run(&stage, "s02-fan-out");
    let events = run.json();
    let first_end = events.iter().find(|event| event["type"] == json!("agent_ended")).unwrap();
    for child in ["oak", "elm", "ash"] {
        let started = when(&events, "call_started", child);
        assert!(started < first_end["seq"].as_u64().unwrap(), "{child} was asked at {started}: {first_end}");
    }
    assert_eq!(whom(&events, "agent_ended"), ["ash", "elm", "oak", "lead"]);
    assert_eq!(texts(&stage.results("lead")), ["broad", "tall", "light"]);
    assert_eq!(run.result()["output"], json!("Three are described; the last one is this: light"));
}

/// S3: detached children are gathered in spawn order, the slowest first, and a source that two of them name is listed
/// once.
#[test]
fn s3_what_was_gathered_comes_in_the_order_of_the_spawns_with_each_source_once() {
    let stage = TestFolder::new();
    let run = run(&stage, "s03-fan-in");
    let events = run.json();
    assert_eq!(whom(&events, "agent_ended"), ["pine", "alder", "willow", "lead"]);
    let results = stage.results("lead");
    let read = texts(&results);
    assert_eq!(read[..3], ["spawned willow", "spawned alder", "spawned pine"]);
    insta::assert_snapshot!(read[3], @"
    [willow completed, used $0.00003125, 69 tokens, 1 step]
    It likes wet soil, see https://www.trees.example/wet/.

    [alder completed, used $0.0000285, 66 tokens, 1 step]
    It likes wet soil, see https://trees.example/wet

    [pine completed, used $0.00002725, 65 tokens, 1 step]
    It does not, see https://trees.example/dry

    Sources:
    - https://www.trees.example/wet/ (willow, alder)
    - https://trees.example/dry (pine)
    ");
    // The list of sources has its own limit; the whole list is shown, with the line about what is left.
    let tokens = results[3]["tokens"].as_u64().unwrap();
    assert!(tokens <= read[3].len() as u64 + 200, "{tokens} tokens of {} bytes", read[3].len());
    // The lead answers from it.
    assert_eq!(run.result()["output"], json!(format!("Gathered:\n{}", read[3])));
    // It continued meanwhile: it spoke again while the slowest child was running.
    let spoke = json!("All three are on their way.");
    let spoke = events.iter().find(|event| event["outcome"]["body"]["text"] == spoke).unwrap();
    assert!(spoke["seq"].as_u64().unwrap() < when(&events, "agent_ended", "willow"));
}

/// S19: a child that hangs ends at its timeout; its parent is notified, has the other child's answer, and completes.
#[test]
fn s19_a_child_that_hangs_is_ended_in_time_and_its_parent_answers() {
    let stage = TestFolder::new();
    let run = run(&stage, "s19-timeout");
    let (events, result) = (run.json(), run.result());
    assert_eq!(result["output"], json!("The oak is eighty; about the elm nobody answered in time."));
    assert_eq!(
        texts(&stage.results("lead")),
        ["elm failed (timeout: it took longer than its timeout of 300 ms)", "eighty rings"]
    );
    let ends = |agent: &str| {
        let is = |event: &&Value| event["type"] == json!("agent_ended") && event["agent"] == json!(agent);
        events.iter().find(is).unwrap()
    };
    let timeout = json!({ "state": "failed", "error": { "code": "timeout", "message": "it took longer than its timeout of 300 ms" } });
    assert_eq!(ends("elm")["exit"], timeout);
    let took = ends("elm")["end"].as_u64().unwrap() - ends("elm")["start"].as_u64().unwrap();
    assert!(took >= 300, "it had 300 ms and ended after {took} ms");
    // Long before the timeout of the tree, which is a minute.
    assert!(result["elapsed_ms"].as_u64().unwrap() < 30_000, "{result}");
    assert_eq!(ends("lead")["exit"], json!({ "state": "completed" }));
}

/// S20: a circle of delegation is refused with its path, also for a role that may appear below itself but has the same
/// goal there; the refused agent does the task itself or delegates something else.
#[test]
fn s20_a_circle_of_delegation_is_refused_with_its_path() {
    let stage = TestFolder::new();
    let run = run(&stage, "s20-cycle");
    let events = run.json();
    assert_eq!(run.result()["output"], json!("A bread, and sorted by sorter"));
    let refusal = |role: &str, path: &str| {
        format!(
            "role `{role}` is already an ancestor here ({path}): do this part yourself or hand it to another role"
        )
    };
    let baker = stage.results("baker");
    assert_eq!(texts(&baker), [refusal("miller", "miller > baker > miller")]);
    assert_eq!(baker[0]["is_error"], json!(true));
    let sorter = stage.results("sorter");
    assert_eq!(texts(&sorter), [refusal("sorter", "miller > sorter > sorter").as_str(), "sorted by sorter"]);
    assert_eq!((&sorter[0]["is_error"], &sorter[1]["is_error"]), (&json!(true), &json!(false)));
    assert_eq!(texts(&stage.results("miller")), ["Baked by myself.", "sorted by sorter"]);
    // The refused agents never existed; the sorter with another goal did.
    assert_eq!(whom(&events, "agent_spawned"), ["miller", "baker", "sorter", "half"]);
}
