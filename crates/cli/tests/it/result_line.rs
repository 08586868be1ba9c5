//! With `--json` the last line is always a result, and it can be printed again.

use serde_json::{Value, json};

use crate::scripts::SAYS;
use crate::test_folder::{Ended, TestFolder};
use crate::upstream::{Reply, Upstream};

fn last_line(ended: &Ended) -> &str {
    ended.out.lines().next_back().unwrap()
}

/// `resume` and `replay` print the result of the last tree's run again, byte for byte.
fn is_given_again(stage: &TestFolder, run: &Ended) {
    let resumed = stage.spinney(&["resume", "last", "--json"]);
    assert_eq!((resumed.code, resumed.out.trim_end()), (run.code, last_line(run)), "{}", resumed.err);
    let replayed = stage.spinney(&["replay", "last", "--json"]);
    assert_eq!((replayed.code, replayed.out.as_str()), (run.code, run.out.as_str()), "{}", replayed.err);
    let verified = stage.spinney(&["replay", "last", "--verify", "--json"]);
    assert_eq!((verified.code, verified.out.trim_end()), (run.code, last_line(run)), "{}", verified.err);
    assert!(verified.err.contains("with the same result"), "{}", verified.err);
}

#[test]
fn a_result_can_be_had_again_however_the_tree_ended() {
    // The answer is too long for an event.
    let long = format!("rules: [ {{ think_ms: 20, say: {} }} ]", "word ".repeat(20_000).trim_end());
    for (script, code) in [(SAYS, 0), (long.as_str(), 0), ("rules: [ { fail: { kind: auth } } ]", 1)] {
        let stage = TestFolder::new();
        let tree = stage.tree("", script);
        let text = std::fs::read_to_string(&tree).unwrap();
        let tree =
            stage.file("tree.yaml", &text.replace("tools: []", "limits: { max_tokens_per_step: 100000 }"));
        let run = stage.spinney(&["run", &tree, "--json"]);
        assert_eq!(run.code, Some(code), "{}", run.err);
        is_given_again(&stage, &run);
    }
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", "rules: [ { hang: true } ]"), "--json"]);
    running.until("call_started");
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    let run = running.end();
    assert_eq!(run.code, Some(4));
    is_given_again(&stage, &run);
}

/// Issue 15: the process dies after the tree's end is durable and before it has written the result. It cannot write it
/// because its output has no reader, and the pipe is full.
#[test]
fn a_result_that_a_killed_process_did_not_write_is_not_lost() {
    let stage = TestFolder::new();
    let words = "word ".repeat(6_000);
    let tree = std::fs::read_to_string(stage.tree("", SAYS)).unwrap();
    let tree =
        tree.replace("Try it.", &words).replace("model: fast,", &format!("model: fast, prompt: '{words}',"));
    let running = stage.play(&["run", &stage.file("long.yaml", &tree), "--json"]);
    while stage.spinney(&["ps", "--json"]).out.is_empty() {}
    let events = stage.spinney(&["events", "last", "--follow", "--json"]);
    running.signal("KILL");
    let killed = running.end();
    assert_eq!(killed.code, None, "it was still there");
    assert!(!killed.out.contains(r#""type":"result""#));
    let resumed = stage.spinney(&["resume", "last", "--json"]);
    let result = resumed.result();
    let found = (resumed.code, &result["state"], &result["output"]);
    assert_eq!(found, (Some(0), &json!("completed"), &json!("done")), "{}", resumed.err);
    let replayed = stage.spinney(&["replay", "last", "--json"]);
    assert_eq!(replayed.out, format!("{}{}", events.out, resumed.out));
    assert_eq!(stage.spinney(&["ps", "--json"]).result()["event_hash"], result["event_hash"]);
}

/// The only line of a command that could not do anything.
fn only_line(ended: &Ended) -> Value {
    let lines = ended.json();
    assert_eq!(lines.len(), 1, "{}", ended.out);
    assert!(ended.err.starts_with("spinney: "), "{}", ended.err);
    lines[0].clone()
}

#[test]
fn a_tree_that_could_not_start_leaves_a_result_line_too() {
    let stage = TestFolder::new();
    stage.file("s.yaml", SAYS);
    let tree = stage.file(
        "typo.yaml",
        "name: x\nbuget: { cost_usd: 1 }\nmodels: { m: { provider: scripted, script: s.yaml } }\n\
         agents: { a: { model: m } }\n",
    );
    let refused = stage.spinney(&["run", &tree, "--json"]);
    assert_eq!(refused.code, Some(2));
    let expected = json!({
        "type": "result", "tree": null, "state": "failed", "output": "", "outputs": {},
        "succeeded": [], "failed": [], "skipped": [],
        "spent": {
            "cost_usd": 0.00, "cost_nanos": 0, "tokens": 0, "steps": 0, "tool_calls": 0, "retries": 0,
            "presumed": { "cost_usd": 0.00, "cost_nanos": 0, "tokens": 0 },
        },
        "builtin_calls": 0, "agents": 0, "elapsed_ms": 0, "event_hash": "",
        "error": {
            "code": "usage",
            "message": format!("{tree}:2:1: unknown key `buget`: did you mean `budget`?"),
            "remedy": "fix what the message names, then run it again",
        },
    });
    assert_eq!(only_line(&refused), expected);

    stage.spinney(&["run", &stage.tree("", SAYS)]);
    for command in ["resume", "replay"] {
        let unknown = stage.spinney(&[command, "ffff", "--json"]);
        let line = only_line(&unknown);
        assert_eq!((unknown.code, &line["error"]["code"]), (Some(2), &json!("usage")));
        assert_eq!(line["tree"], json!(null));
    }

    let mut running = stage.play(&["run", &stage.tree("", "rules: [ { hang: true } ]")]);
    running.until("starts");
    let id = stage.spinney(&["ps", "--json"]).json()[0]["tree"].clone();
    let locked = stage.spinney(&["resume", "last", "--json"]);
    let line = only_line(&locked);
    assert_eq!((locked.code, &line["error"]["code"], &line["tree"]), (Some(6), &json!("locked"), &id));
    assert_eq!((&line["spent"], &line["agents"]), (&json!(null), &json!(null)), "nobody looked");
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    assert_eq!(running.end().code, Some(4));
}

/// The disk is full.
#[test]
fn a_store_that_fails_while_a_tree_runs_leaves_a_result_line_and_a_resumable_tree() {
    let stage = TestFolder::new();
    let words = "word ".repeat(12_000);
    let script = format!(
        "rules:\n  - when: {{ turn: 15 }}\n    say: done\n  - call: [ {{ tool: look, args: {{ turn: '{{{{ turn }}}}' }} }} ]\ntools: {{ look: {{ say: '{{{{ args.turn }}}} {words}' }} }}"
    );
    let tree = stage.tree_with("budget: { cost_usd: 100 }", "look", &script);
    // With SIGXFSZ ignored, a write beyond this file size fails instead of killing the process.
    let run = stage.shell(&format!("trap '' XFSZ; ulimit -f 1200; spinney run '{tree}' --json"));
    let result = run.result();
    assert_eq!((run.code, &result["state"]), (Some(1), &json!("failed")), "{}", run.err);
    assert_eq!(result["error"]["code"], json!("journal"), "{result}");
    let id = result["tree"].as_str().unwrap();
    let remedy = format!("fix what the message names, then: spinney resume {}", &id[..12]);
    assert_eq!(result["error"]["remedy"], json!(remedy));
    let stored = stage.spinney(&["ps", "--json"]).result();
    assert_eq!((&stored["tree"], &stored["event_hash"]), (&result["tree"], &result["event_hash"]));
    assert!(result["spent"]["steps"].as_u64().unwrap() > 0, "{result}");
    let resumed = stage.spinney(&["resume", "last", "--json"]);
    assert_eq!((resumed.code, &resumed.result()["output"]), (Some(0), &json!("done")), "{}", resumed.err);
}

#[test]
fn a_journal_that_is_not_what_it_says_leaves_a_result_line() {
    let stage = TestFolder::new();
    stage.spinney(&["run", &stage.tree("", "rules: [ { say: an unmistakable answer } ]")]);
    let file = stage.home().join("journal.sqlite3");
    let mut bytes = std::fs::read(&file).unwrap();
    // As an event has it; the script has it without the quotes.
    let text = b"\"an unmistakable answer\"";
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at + 1] = b'A';
    std::fs::write(&file, bytes).unwrap();
    let checked = stage.spinney(&["replay", "last", "--verify", "--json"]);
    assert_eq!((checked.code, &only_line(&checked)["error"]["code"]), (Some(1), &json!("diverged")));
    for command in ["replay", "resume"] {
        let failed = stage.spinney(&[command, "last", "--json"]);
        assert_eq!((failed.code, &failed.result()["error"]["code"]), (Some(1), &json!("journal")));
    }
}

/// A pause is a person's decision: the tree is shown as paused, not stopped.
#[test]
fn a_tree_that_a_person_paused_is_paused_wherever_states_are_shown() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![Reply::writes().late(), Reply::says("done", &[])]);
    let mut running = stage.play(&["run", &stage.tree_on(&upstream), "--json"]);
    upstream.was_asked(1);
    assert_eq!(stage.spinney(&["pause", "last"]).code, Some(0));
    upstream.release();
    running.until("agent_paused");
    running.signal("INT");
    let ended = running.end();
    assert_eq!((ended.code, &ended.result()["state"]), (Some(130), &json!("paused")), "{}", ended.err);
    assert_eq!(stage.spinney(&["ps", "--json"]).result()["state"], json!("paused"));
    let replayed = stage.spinney(&["replay", "last", "--json"]);
    assert_eq!((replayed.code, &replayed.result()["state"]), (Some(0), &json!("paused")));
    let mut resumed = stage.play(&["resume", "last"]);
    resumed.until_noted("paused, nothing runs");
    resumed.signal("INT");
    let ended = resumed.end();
    assert_eq!(ended.code, Some(130));
    let next = ended.out.lines().find_map(|line| line.strip_prefix("  next    ")).unwrap();
    let done = stage.shell(next);
    assert!(done.out.contains("  answer  done\n"), "{}{}", done.out, done.err);
}
