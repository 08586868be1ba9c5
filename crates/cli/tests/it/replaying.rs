//! Replay: from the journal alone, and whatever is not as it was written is found and named.

use serde_json::json;

use crate::stage::{Stage, steady};

const SAYS: &str = "rules: [ { say: an unmistakable answer } ]";

#[test]
fn a_journal_is_verified_without_a_model() {
    let stage = Stage::new();
    let result = stage.spinney(&["run", &stage.tree("", SAYS), "--json"]).result();
    let verified = stage.spinney(&["replay", "last", "--verify"]);
    insta::assert_snapshot!(steady(&verified.out), @"
    verified: 6 events; every input was decided again by rules 3, and nothing differs
      hash    [hash]
      state   completed
      answer  an unmistakable answer
    ");
    let hash = result["event_hash"].as_str().unwrap();
    assert!(verified.out.contains(hash));
    assert_eq!(stage.spinney(&["replay", "last", "--expect", hash]).code, Some(0));
    let backwards: String = hash.chars().rev().collect();
    let other = stage.spinney(&["replay", "last", "--expect", &backwards]);
    assert_eq!(other.code, Some(1), "{}", other.out);
    assert!(other.err.contains("ends at event 6 with hash"), "{}", other.err);
}

#[test]
fn a_story_is_told_again_from_the_journal() {
    let stage = Stage::new();
    stage.spinney(&["run", &stage.tree("", SAYS)]);
    insta::assert_snapshot!(steady(&stage.spinney(&["replay", "last"]).out), @"
      0.00s  lead starts: Try it.
      0.00s  lead answers: an unmistakable answer
      0.00s  lead completed; spent $0.00001875, 51 tokens, 1 step

    replayed: 6 events; every input was decided again by rules 3, and nothing differs
      hash    [hash]
      state   completed
      answer  an unmistakable answer
    ");
}

#[test]
fn one_changed_byte_is_found_and_named() {
    let stage = Stage::new();
    stage.spinney(&["run", &stage.tree("", SAYS)]);
    let file = stage.home().join("journal.sqlite3");
    let mut bytes = std::fs::read(&file).unwrap();
    let text = b"an unmistakable answer";
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at] = b'A';
    std::fs::write(&file, bytes).unwrap();
    let diverged = stage.spinney(&["replay", "last", "--verify"]);
    assert_eq!((diverged.code, diverged.out.as_str()), (Some(1), ""));
    insta::assert_snapshot!(steady(&diverged.err), @"spinney: tree [tree] is not what its journal says: the journal of tree [tree] is damaged after event 4: the bytes of the next batch do not match their hash");
    assert_eq!(stage.spinney(&["events", "last"]).code, Some(1));
    assert_eq!(stage.spinney(&["ps", "--json"]).result()["state"], json!("completed"));
}

#[test]
fn only_a_tree_that_completed_has_an_answer() {
    let stage = Stage::new();
    let script = "
rules:
  - when: { turn: 1 }
    say: a beginning
    call: [ { tool: look } ]
  - fail: { kind: auth }
tools: { look: { say: seen } }
";
    let run = stage.spinney(&["run", &stage.tree("look", script)]);
    let replayed = stage.spinney(&["replay", "last"]);
    assert_eq!(run.code, Some(1));
    for told in [run.out, replayed.out] {
        assert!(told.contains("  so far  a beginning") && !told.contains("  answer "), "{told}");
    }
}
