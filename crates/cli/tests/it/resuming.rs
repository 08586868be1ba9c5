//! Resuming a tree: after a kill, with its original scripts; a tree that has ended prints its result.

use serde_json::json;

use crate::rewritten::{damage_sources, into_older};
use crate::test_folder::{TestFolder, steady};

const TWO_LOOKS: &str = "
rules:
  - when: { turn: 1 }
    call: [ { tool: look } ]
  - when: { turn: 2 }
    call: [ { tool: look } ]
  - say: 'I saw {{ last }}'
tools: { look: { repeatable: true, think_ms: 400, say: it } }
";

#[test]
fn a_killed_tree_gives_the_same_answer_once_it_is_resumed() {
    let stage = TestFolder::new();
    let tree = stage.tree("look", TWO_LOOKS);
    let whole = stage.spinney(&["run", &tree, "--json"]).result();
    let mut running = stage.play(&["run", &tree]);
    running.until("calls look");
    running.kill();
    // The changed script is only for new trees.
    stage.tree("look", "rules: [ { say: something else } ]\ntools: { look: { say: x } }");
    let resumed = stage.spinney(&["resume", "last", "--json"]);
    let result = resumed.result();
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert_eq!((&result["output"], &result["spent"]), (&whole["output"], &whole["spent"]));
    assert_eq!(resumed.json()[0]["type"], json!("call_resumed"));
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

#[test]
fn the_header_says_how_much_there_was() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("look", TWO_LOOKS)]);
    running.until("calls look");
    running.kill();
    let events = stage.spinney(&["events", "last"]).out.lines().count();
    let resumed = stage.spinney(&["resume", "last"]);
    assert!(resumed.out.lines().next().unwrap().ends_with(&format!("resumed at event {events}")));
    assert!(resumed.out.contains("lead starts look again after a restart"), "{}", resumed.out);
    assert!(resumed.out.contains("  answer  I saw it\n"), "{}", resumed.out);
}

#[test]
fn a_tree_that_has_ended_is_not_run_again_and_gives_its_result() {
    let stage = TestFolder::new();
    stage.spinney(&["run", &stage.tree("look", TWO_LOOKS)]);
    let again = stage.spinney(&["resume", "last"]);
    assert_eq!((again.code, again.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(steady(&again.out), @"
    test · tree [id] · already ended after 18 events

    completed after 0.00s
      answer  I saw it
      spent   $0.000116 · 448 tokens · 3 steps · 2 tool calls · 0 retries
      agents  1
      tree    [tree]
      look    spinney events [id]
    ");
}

/// A tree of an older release, which kept its files in a folder.
#[test]
fn a_tree_is_not_resumed_from_a_file_that_was_changed() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("look", TWO_LOOKS)]);
    running.until("calls look");
    running.kill();
    into_older(&stage);
    let id = stage.spinney(&["ps", "--json"]).result()["tree"].as_str().unwrap().to_owned();
    for file in ["script-1.yaml", "tree.yaml", "kept.json", "checksums"] {
        let path = stage.home().join("trees").join(&id).join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}# changed\n")).unwrap();
        let refused = stage.spinney(&["resume", "last"]);
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
        assert!(refused.err.contains(&format!("`{file}` was changed")), "{}", refused.err);
        let give_up = format!("give up with `spinney cancel {}`", &id[..12]);
        assert!(refused.err.contains("restore them") && refused.err.contains(&give_up), "{}", refused.err);
        std::fs::remove_file(&path).unwrap();
        let missing = stage.spinney(&["resume", "last"]);
        assert!(missing.err.contains(&format!("cannot read `{file}`")), "{}", missing.err);
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(stage.spinney(&["resume", "last"]).code, Some(0));
}

/// A tree that was killed while its first tool ran.
fn killed() -> TestFolder {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("look", TWO_LOOKS)]);
    running.until("calls look");
    running.kill();
    stage
}

/// G31, in part: what a tree is resumed from is in its journal. A home of which only the journal is left resumes its tree,
/// with the same result, after the tree file and its script are gone.
#[test]
fn g31_a_tree_is_resumed_from_its_journal_alone() {
    let uninterrupted = TestFolder::new();
    let whole = uninterrupted.spinney(&["run", &uninterrupted.tree("look", TWO_LOOKS), "--json"]).result();
    let stage = killed();
    assert!(!stage.home().join("trees").exists());
    let moved = stage.folder().join("moved");
    std::fs::create_dir(&moved).unwrap();
    for file in std::fs::read_dir(stage.home()).unwrap().map(|file| file.unwrap()) {
        if file.file_name().to_str().unwrap().starts_with("journal.") {
            std::fs::copy(file.path(), moved.join(file.file_name())).unwrap();
        }
    }
    for file in ["tree.yaml", "tree.script.yaml"] {
        std::fs::remove_file(stage.folder().join(file)).unwrap();
    }
    let home = moved.to_str().unwrap();
    for (home, resumed) in [
        ("moved", stage.spinney(&["--home", home, "resume", "last", "--json"])),
        ("its own", stage.spinney(&["resume", "last", "--json"])),
    ] {
        let result = resumed.result();
        assert_eq!(resumed.code, Some(0), "{home}: {}", resumed.err);
        for key in ["state", "output", "scripted", "agents"] {
            assert_eq!(result[key], whole[key], "{home}: {key}");
        }
    }
    assert!(!stage.home().join("trees").exists());
}

/// G31, in part: a branch is resumed from the first batch of its origin, also when that was removed.
#[test]
fn g31_a_branch_is_resumed_from_the_journal_of_its_origin() {
    let stage = killed();
    assert_eq!(stage.spinney(&["checkpoint", "make", "lead", "--name", "here"]).code, Some(0));
    let origin = stage.spinney(&["ps", "--json"]).result()["tree"].as_str().unwrap().to_owned();
    let branched = stage.spinney(&["checkpoint", "branch", "here", "--budget-usd", "1"]);
    assert_eq!(branched.code, Some(0), "{}", branched.err);
    assert!(!stage.home().join("trees").exists());
    let removed = stage.spinney(&["rm", &origin, "--force"]);
    assert_eq!(removed.code, Some(0), "{}", removed.err);
    let resumed = stage.spinney(&["resume", branched.out.trim()]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(resumed.out.contains("  answer  I saw it\n"), "{}", resumed.out);
    assert_eq!(stage.spinney(&["replay", branched.out.trim(), "--verify"]).code, Some(0));
}

/// A tree whose journal has no sources, with its folder beside it, and its branch.
#[test]
fn a_tree_of_an_older_release_is_resumed_and_branched_from_its_folder() {
    let stage = killed();
    into_older(&stage);
    assert_eq!(stage.spinney(&["checkpoint", "make", "lead", "--name", "here"]).code, Some(0));
    let branched = stage.spinney(&["checkpoint", "branch", "here", "--budget-usd", "1"]);
    assert_eq!(branched.code, Some(0), "{}", branched.err);
    assert!(stage.home().join("trees").join(branched.out.trim()).join("tree.yaml").exists());
    let resumed = stage.spinney(&["resume", branched.out.trim()]);
    assert!(resumed.out.contains("  answer  I saw it\n"), "{}", resumed.err);
    for tree in stage.spinney(&["ps", "--json"]).json() {
        let resumed = stage.spinney(&["resume", tree["tree"].as_str().unwrap()]);
        assert_eq!(resumed.code, Some(0), "{}", resumed.err);
        assert!(resumed.out.contains("  answer  I saw it\n"), "{}", resumed.out);
    }
}

/// G31, in part: bytes that are not what the journal names are damage.
#[test]
fn g31_a_tree_is_not_resumed_from_a_source_that_was_changed() {
    let stage = killed();
    damage_sources(stage.home());
    let refused = stage.spinney(&["resume", "last"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
    for part in ["cannot resume from the files in its journal", "is damaged", "give up with `spinney cancel"]
    {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    let replayed = stage.spinney(&["replay", "last", "--verify"]);
    assert!(replayed.code != Some(0) && replayed.err.contains("which is altered"), "{}", replayed.err);
}

#[test]
fn the_journal_contains_nothing_about_the_machine() {
    let stage = TestFolder::new();
    let tree = stage.tree("", "rules: [ { fail: { kind: auth } } ]");
    let folder = stage.folder().display().to_string();
    assert!(tree.starts_with(&folder));
    let ended = stage.spinney(&["run", &tree, "--json"]);
    assert!(ended.out.contains("tree.script.yaml") && !ended.out.contains(&folder), "{}", ended.out);
}

#[test]
fn a_tree_that_is_refused_leaves_nothing_behind() {
    let stage = TestFolder::new();
    let tree = stage.tree("", "rules: [ { say: hi } ]\ntools: { spawn_agent: { say: x } }");
    let text = std::fs::read_to_string(&tree).unwrap().replace("tools: []", "tools: [spawn_agent]");
    let tree = stage.file("taken.yaml", &text);
    let refused = stage.spinney(&["run", &tree]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("that is a built-in tool"), "{}", refused.err);
    assert!(!stage.home().join("trees").exists());
    assert_eq!(stage.spinney(&["ps"]).out, "no trees yet: `spinney run 'your tree.yaml'` starts one\n");
}

/// Issue 15: after an expired question timeout or deadline, the tree was shown as waiting in half of the runs.
#[test]
fn a_tree_whose_time_was_over_is_never_shown_as_waiting_when_it_is_resumed() {
    const ASKS: &str = "
rules:
  - when: { turn: 1 }
    call: [ { tool: ask_human, args: { question: Which colour?, timeout: 3s, default: blue } } ]
  - say: 'You said {{ last }}'
";
    let question = "budget: { cost_usd: 1 }";
    let deadline = "budget: { cost_usd: 1, timeout: { wall: 3s } }";
    let stages: Vec<(TestFolder, bool)> =
        (0..20).map(|number| (TestFolder::new(), number % 2 == 0)).collect();
    for (stage, is_question) in &stages {
        let tree = stage.tree_with(if *is_question { question } else { deadline }, "ask_human", ASKS);
        assert_eq!(stage.spinney(&["run", &tree]).code, Some(5));
    }
    // Time passes while another tree runs.
    let other = TestFolder::new();
    let slow = other.tree("", "rules: [ { think_ms: 3100, say: done } ]");
    assert_eq!(other.spinney(&["run", &slow]).code, Some(0));
    for (stage, is_question) in &stages {
        let resumed = stage.spinney(&["resume", "last", "--json"]);
        let expected = if *is_question {
            (0, "completed", "You said no answer in time; your default answer is used: blue")
        } else {
            (1, "failed", "")
        };
        let result = resumed.result();
        let found = (resumed.code.unwrap(), result["state"].as_str(), result["output"].as_str());
        assert_eq!(found, (expected.0, Some(expected.1), Some(expected.2)), "{}", resumed.err);
    }
}
