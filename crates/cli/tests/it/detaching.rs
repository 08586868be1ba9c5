//! `run --detach`: a separate process runs the tree, and stays while it waits. Text pieces in JSON, from there as well.

use serde_json::{Value, json};

use crate::scripts::ASKS;
use crate::test_folder::TestFolder;

/// A tree that speaks slowly, two levels deep.
const SPEAKS: &str = "
rules:
  - when: { agent: lead, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: deep, goal: Speak. } } ]
  - when: { agent: helper }
    chunk_ms: 40
    say: 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen'
  - say: done
";

fn speaks(stage: &TestFolder) -> String {
    stage.file("speaks.script.yaml", SPEAKS);
    stage.file(
        "speaks.yaml",
        "name: speaks
goal: Speak.
budget: { cost_usd: 1 }
models:
  fast: { provider: scripted, script: speaks.script.yaml, price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 } }
agents:
  lead: { model: fast, tools: [spawn_agent], subagents: [helper] }
  helper: { model: fast }
entry: lead
",
    )
}

/// The text of an agent, put together from its pieces, whose offsets begin at 0 and have no gap.
fn together(lines: &[Value], agent: &str) -> String {
    let mut text = String::new();
    for piece in lines.iter().filter(|line| line["type"] == "text" && line["agent"] == agent) {
        let offset = piece["offset"].as_u64().unwrap();
        assert_eq!(offset, text.len() as u64, "{piece}");
        assert!(piece["call"].is_u64() && piece["attempt"] == 1 && piece["kind"] == "text", "{piece}");
        text.push_str(piece["text"].as_str().unwrap());
    }
    text
}

/// O17 (text): the text of a deep agent comes before it ends, with its path, its tree, its call and where it belongs;
/// without `--text` there is none.
#[test]
fn o17_text_of_a_deep_agent_comes_as_lines_before_its_end() {
    let stage = TestFolder::new();
    let file = speaks(&stage);
    let lines = stage.spinney(&["run", &file, "--json", "--text"]).json();
    let text = together(&lines, "deep");
    assert!(text.ends_with("fifteen sixteen seventeen"), "{text}");
    let piece = lines.iter().position(|line| line["type"] == "text" && line["agent"] == "deep").unwrap();
    assert_eq!((&lines[piece]["path"], &lines[piece]["tree"]), (&json!("lead/deep"), &lines[0]["tree"]));
    let ended =
        lines.iter().position(|line| line["type"] == "agent_ended" && line["agent"] == "deep").unwrap();
    assert!(piece < ended);
    let plain = stage.spinney(&["run", &file, "--json"]).json();
    assert!(plain.iter().all(|line| line["type"] != "text"));
    assert_eq!(stage.spinney(&["run", &file, "--text"]).code, Some(2));
}

/// O16: the client that started a tree leaves, and the work continues. Another one follows it from any event, misses nothing,
/// sees nothing twice, and gets the text that is streamed.
#[test]
fn o16_a_detached_tree_continues_and_is_followed_from_any_event() {
    let stage = TestFolder::new();
    let started = stage.spinney(&["run", &speaks(&stage), "--detach"]);
    assert_eq!(started.code, Some(0), "{}", started.err);
    let tree = started.out.trim().to_owned();
    assert!(tree.len() == 32 && started.err.contains("spinney attach"), "{} {}", started.out, started.err);
    let followed = stage.spinney(&["events", &tree, "--follow", "--json", "--text"]).json();
    // Its beginning may have been streamed before this process came.
    let pieces: Vec<&Value> = followed.iter().filter(|line| line["type"] == "text").collect();
    for two in pieces.windows(2) {
        let after = two[0]["offset"].as_u64().unwrap() + two[0]["text"].as_str().unwrap().len() as u64;
        assert!(two[1]["call"] != two[0]["call"] || two[1]["offset"] == json!(after), "{two:?}");
    }
    let numbers =
        |lines: &[Value]| -> Vec<u64> { lines.iter().filter_map(|line| line["seq"].as_u64()).collect() };
    let all = numbers(&followed);
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
    let later = numbers(&stage.spinney(&["events", &tree, "--follow", "--json", "--from", "5"]).json());
    assert_eq!(later, all[4..]);
    let resumed = stage.spinney(&["resume", &tree, "--json"]);
    assert_eq!((resumed.code, &resumed.result()["state"]), (Some(0), &json!("completed")));
    assert_eq!(stage.spinney(&["rm", &tree]).code, Some(0));
}

/// A detached tree stays while it waits for a person: an answer from anywhere continues it at once.
#[test]
fn o16_a_detached_tree_stays_while_it_waits_for_a_person() {
    let stage = TestFolder::new();
    let started = stage.spinney(&["run", &stage.tree("ask_human", ASKS), "--detach"]);
    assert_eq!(started.code, Some(0), "{}", started.err);
    let tree = started.out.trim().to_owned();
    let mut following = stage.play(&["events", &tree, "--follow", "--json"]);
    following.until("question_asked");
    let answered = stage.spinney(&["answer", &tree, "2", "blue"]);
    assert_eq!(answered.code, Some(0), "{}", answered.err);
    assert!(!answered.err.contains("resume"), "it continues by itself: {}", answered.err);
    let ended = following.end();
    assert!(ended.out.contains("agent_ended"), "{}", ended.out);
}

/// What is wrong is said to the one who started it, with the exit code of `run`.
#[test]
fn a_detached_tree_that_does_not_start_says_why() {
    let stage = TestFolder::new();
    let ended = stage.spinney(&["run", "nowhere.yaml", "--detach"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
    assert!(ended.err.contains("nowhere.yaml"), "{}", ended.err);
    assert_eq!(stage.spinney(&["run", &speaks(&stage), "--detach", "--json"]).code, Some(2));
}
