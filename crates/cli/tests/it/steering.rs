//! Controlling a tree from a second process, whether or not another one runs the tree.

use serde_json::json;

use crate::scripts::{ASKS, BUSY};
use crate::test_folder::{Ended, TestFolder, steady};
use crate::upstream::{Reply, Upstream};

fn ok(ended: &Ended) {
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{}", ended.err);
}

#[test]
fn a_running_tree_takes_every_request_from_another_process() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("ask_human, hang", BUSY)]);
    running.until("asks a person (question 2)");
    ok(&stage.spinney(&["answer", "last", "2", "blue"]));
    running.until("has an answer from a person: blue");
    ok(&stage.spinney(&["send", "last", "lead", "Hurry up."]));
    running.until("gets a message from a person: Hurry up.");
    ok(&stage.spinney(&["budget", "last", "--add-usd", "0.5"]));
    running.until("may use $0.50 more");
    ok(&stage.spinney(&["pause", "last"]));
    running.until("is paused");
    ok(&stage.spinney(&["unpause", "last", "lead"]));
    running.until("continues");
    ok(&stage.spinney(&["cancel", "last"]));
    running.until("cancelled (a person cancelled it)");
    assert_eq!(running.end().code, Some(4));
    assert!(!stage.home().join("control").exists());
}

#[test]
fn refusals_are_reported_to_the_caller() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("ask_human, hang", BUSY)]);
    running.until("asks a person");
    let refused = |args: &[&str]| {
        let ended = stage.spinney(args);
        assert_eq!(ended.code, Some(2), "{}", ended.err);
        steady(&ended.err)
    };
    insta::assert_snapshot!(refused(&["answer", "last", "7", "blue"]), @"spinney: no question 7 is open: choose one of `2`; list open questions: spinney questions [id]");
    insta::assert_snapshot!(refused(&["unpause", "last"]), @"spinney: `lead` is not paused: nothing to unpause");
    insta::assert_snapshot!(refused(&["send", "last", "No body", "hi"]), @"spinney: `No body` is not a valid agent id: 1 to 64 characters of a-z, 0-9, `_` and `-`, the first a letter or digit");
    insta::assert_snapshot!(refused(&["budget", "last", "--add-tokens", "5"]), @"spinney: nothing to raise: name a resource that has a ceiling: choose one of `cost`");
    running.kill();
    insta::assert_snapshot!(refused(&["answer", "last", "7", "blue"]), @"spinney: no question 7 is open: choose one of `2`; list open questions: spinney questions [id]");
    insta::assert_snapshot!(refused(&["unpause", "last"]), @"spinney: `lead` is not paused: nothing to unpause; continue with: spinney resume [id]");
}

/// A pause is a person's decision: it survives the process, is reported, and can be ended whether or not the tree runs.
#[test]
fn a_tree_that_a_person_paused_is_brought_back_by_unpausing_it() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![Reply::writes().late(), Reply::says("done", &[])]);
    let mut running = stage.play(&["run", &stage.tree_on(&upstream)]);
    upstream.was_asked(1);
    ok(&stage.spinney(&["pause", "last"]));
    upstream.release();
    running.until_noted("paused, nothing runs");
    running.kill();
    let mut resumed = stage.play(&["resume", "last"]);
    resumed.until_noted("paused, nothing runs");
    resumed.kill();
    ok(&stage.spinney(&["unpause", "last"]));
    let result = stage.spinney(&["resume", "last", "--json"]);
    assert_eq!((result.code, &result.result()["output"]), (Some(0), &json!("done")), "{}", result.err);
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// Issue 16: pausing a stopped tree, or unpausing a paused one, recorded a call as started that nothing executed.
#[test]
fn pausing_and_unpausing_a_tree_that_is_not_running_starts_nothing() {
    let stage = TestFolder::new();
    let script = "
rules: [ { when: { turn: 1 }, call: [ { tool: look } ] }, { say: 'I saw {{ last }}' } ]
tools: { look: { think_ms: 300, say: it } }
";
    let mut running = stage.play(&["run", &stage.tree("look", script)]);
    running.until("calls look");
    running.signal("INT");
    assert_eq!(running.end().code, Some(130));
    let seen = || {
        let events = stage.spinney(&["events", "last", "--json"]).json();
        let started = events.iter().filter(|event| event["type"] == "call_started").count();
        (stage.spinney(&["ps", "--json"]).result()["state"].clone(), started)
    };
    assert_eq!(seen(), (json!("stopped"), 2));
    assert_eq!(stage.spinney(&["unpause", "last"]).code, Some(2));
    for _ in 0..2 {
        ok(&stage.spinney(&["pause", "last"]));
        assert_eq!(seen(), (json!("paused"), 2));
        assert_eq!(stage.spinney(&["pause", "last"]).code, Some(2));
        ok(&stage.spinney(&["unpause", "last"]));
        assert_eq!(seen(), (json!("stopped"), 2));
        assert_eq!(stage.spinney(&["unpause", "last"]).code, Some(2));
    }
    ok(&stage.spinney(&["pause", "last"]));
    let resumed = stage.spinney(&["resume", "last", "--unpause", "--json"]);
    assert_eq!((resumed.code, &resumed.result()["output"]), (Some(0), &json!("I saw it")), "{}", resumed.err);
    assert_eq!(seen(), (json!("completed"), 3));
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

#[test]
fn a_tree_that_is_not_running_takes_requests_without_calling_a_model() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", ASKS)]).code, Some(5));
    ok(&stage.spinney(&["answer", "last", "2", "blue"]));
    ok(&stage.spinney(&["send", "last", "lead", "And be brief."]));
    ok(&stage.spinney(&["budget", "last", "--add-usd", "1"]));
    let started = |stage: &TestFolder| {
        let events = stage.spinney(&["events", "last", "--json"]).json();
        events.iter().filter(|event| event["type"] == "call_started").count()
    };
    assert_eq!(started(&stage), 1);
    let resumed = stage.spinney(&["resume", "last", "--json"]);
    assert_eq!(
        (resumed.code, resumed.result()["output"].clone()),
        (Some(0), json!("You said And be brief."))
    );
    // One turn with the answer, and one more for the message that arrived after it.
    assert_eq!(started(&stage), 3);
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

#[test]
fn another_tree_of_a_home_that_is_open_takes_requests_too() {
    let stage = TestFolder::new();
    let waiting = stage.spinney(&["run", &stage.tree("ask_human", ASKS), "--json"]).result();
    let id = waiting["tree"].as_str().unwrap();
    let mut running = stage.play(&["run", &stage.tree("", "rules: [ { hang: true } ]")]);
    running.until("starts");
    ok(&stage.spinney(&["answer", id, "2", "blue"]));
    running.kill();
    let resumed = stage.spinney(&["resume", id, "--json"]);
    assert_eq!(resumed.result()["output"], json!("You said blue"));
}

#[test]
fn a_tree_that_was_killed_can_be_cancelled() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("ask_human, hang", BUSY)]);
    running.until("asks a person");
    running.kill();
    ok(&stage.spinney(&["cancel", "last"]));
    let listed = stage.spinney(&["ps", "--json"]).result();
    assert_eq!(listed["state"], json!("cancelled"));
    let again = stage.spinney(&["cancel", "last"]);
    assert_eq!(
        (again.code, steady(&again.err).as_str()),
        (Some(2), "spinney: the tree has ended: start a new one; see how it ended: spinney resume [id]\n")
    );
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

#[test]
fn a_home_may_lie_deeper_than_a_socket_address_is_long() {
    let stage = TestFolder::new().at(&["a_folder_with_a_long_name"; 8].join("/"));
    let mut running = stage.play(&["run", &stage.tree("", "rules: [ { hang: true } ]")]);
    running.until("starts");
    assert_eq!(stage.spinney(&["ps", "--json"]).result()["state"], json!("running"));
    ok(&stage.spinney(&["cancel", "last"]));
    assert_eq!(running.end().code, Some(4));
}

#[test]
fn only_the_owner_may_reach_a_running_home() {
    use std::os::unix::fs::PermissionsExt;
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", "rules: [ { hang: true } ]")]);
    running.until("starts");
    let mode = std::fs::metadata(stage.home().join("control")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    running.kill();
}

#[test]
fn nonsense_on_the_socket_is_refused_and_changes_nothing() {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", "rules: [ { hang: true } ]")]);
    running.until("starts");
    let reply = |line: &[u8]| {
        let mut stream = UnixStream::connect(stage.home().join("control")).unwrap();
        let _ = stream.write_all(line);
        let mut reply = String::new();
        let _ = stream.read_to_string(&mut reply);
        reply
    };
    let id = stage.spinney(&["ps", "--json"]).result()["tree"].as_str().unwrap().to_owned();
    assert!(reply(b"hello\n").contains(r#""kind":"refused""#));
    // The server may close the connection before it has answered.
    reply(&[b'x'; 300 * 1024]);
    let finish = format!(
        r#"{{"version":2,"body":{{"kind": "apply","tree":"{id}","request":{{"verb":"finish","agent":"lead","result":{{"text":"x"}}}}}}}}"#
    );
    assert!(reply(format!("{finish}\n").as_bytes()).contains("not allowed from another process"));
    assert_eq!(stage.spinney(&["ps", "--json"]).result()["state"], json!("running"));
    running.kill();
}

#[test]
fn a_process_that_does_not_answer_is_not_taken_for_dead() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", "rules: [ { hang: true } ]")]);
    running.until("starts");
    running.signal("STOP");
    let (listed, cancelled) = std::thread::scope(|scope| {
        let listed = scope.spawn(|| stage.spinney(&["ps", "--json"]));
        let cancelled = scope.spawn(|| stage.spinney(&["cancel", "last"]));
        (listed.join().unwrap(), cancelled.join().unwrap())
    });
    let silent = format!("process {} has this home open and does not answer", running.pid());
    assert_eq!(listed.result()["state"], json!("running"));
    assert!(listed.err.contains(&silent) && !listed.err.contains("gone"), "{}", listed.err);
    assert_eq!(cancelled.code, Some(7), "{}", cancelled.err);
    assert!(
        cancelled
            .err
            .contains("it is unknown whether the request was carried out; find out with `spinney events"),
        "{}",
        cancelled.err
    );
    // The request waited in the socket, and its process has ended: the requester is no longer known.
    running.signal("CONT");
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    assert_eq!(running.end().code, Some(4));
}

/// Adds time to a running tree, and to a waiting tree that no process runs. Without a timeout there is nothing to add
/// to.
#[test]
fn time_is_added_to_a_tree_that_runs_and_to_one_that_waits() {
    let stage = TestFolder::new();
    let budget = "budget: { cost_usd: 1, timeout: 1h }";
    let mut running = stage.play(&["run", &stage.tree_with(budget, "ask_human, hang", BUSY)]);
    running.until("asks a person (question 2)");
    ok(&stage.spinney(&["budget", "last", "--add-time", "5m"]));
    running.until("may take 5 minutes longer");
    running.kill();

    let stage = TestFolder::new();
    let waits = stage.spinney(&["run", &stage.tree_with(budget, "ask_human", ASKS)]);
    assert_eq!(waits.code, Some(5), "{}", waits.err);
    let added = stage.spinney(&["budget", "last", "--add-time", "90s", "--add-usd", "0.5"]);
    assert_eq!(added.code, Some(0), "{}", added.err);
    assert!(
        added.err.contains("`lead` may use $0.50 more and take 1 minute 30 seconds longer"),
        "{}",
        added.err
    );
    let shown = stage.spinney(&["events", "last", "--json"]).json();
    let raised = shown.iter().find(|event| event["type"] == json!("limit_raised")).unwrap();
    assert_eq!(raised["add_ms"], json!(90_000));
    let left = shown.iter().rfind(|event| event["type"] == json!("clock_set")).unwrap();
    assert!(left["left_ms"].as_u64().unwrap() > 3_600_000 && left.get("alarm").is_none(), "{left}");
    ok(&stage.spinney(&["answer", "last", "2", "blue"]));
    assert_eq!(stage.spinney(&["resume", "last"]).code, Some(0));

    let stage = TestFolder::new();
    stage.spinney(&["run", &stage.tree("ask_human", ASKS)]);
    let refused = stage.spinney(&["budget", "last", "--add-time", "5m"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    insta::assert_snapshot!(refused.err, @"spinney: `lead` has no timeout to extend: name the agent that has one");
    let wrong = stage.spinney(&["budget", "last", "--add-time", "soon"]);
    assert!(wrong.err.contains("`soon` is not a time"), "{}", wrong.err);
}

/// A default answer is marked as such, for watchers and for the agent.
#[test]
fn a_default_answer_is_not_shown_as_a_persons() {
    let stage = TestFolder::new();
    let script = BUSY.replace("Which colour?", "Which colour?, default: blue, timeout: 300ms");
    let mut running = stage.play(&["run", &stage.tree("ask_human, hang", &script)]);
    running.until("got no answer from a person in time and uses the default: blue");
    running.kill();
    let events = stage.spinney(&["events", "last", "--json"]).json();
    let end = events.iter().find(|event| event["outcome"]["end"] == json!("answered")).unwrap();
    assert_eq!(end["outcome"]["is_default"], json!(true));
}
