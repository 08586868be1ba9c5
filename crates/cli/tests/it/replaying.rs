//! Replay works from the journal alone, and detects and names anything that was changed.

use serde_json::json;

use crate::test_folder::{TestFolder, steady};

const SAYS: &str = "rules: [ { say: an unmistakable answer } ]";

#[test]
fn a_journal_is_verified_without_a_model() {
    let stage = TestFolder::new();
    let result = stage.spinney(&["run", &stage.tree("", SAYS), "--json"]).result();
    let verified = stage.spinney(&["replay", "last", "--verify"]);
    insta::assert_snapshot!(steady(&verified.out), @"
    verified: 6 events; every decision was repeated under rules 8, with the same result
      hash    [hash]
      end     matches the 6 events recorded on this machine
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
fn the_event_texts_are_reprinted_from_the_journal() {
    let stage = TestFolder::new();
    stage.spinney(&["run", &stage.tree("", SAYS)]);
    insta::assert_snapshot!(steady(&stage.spinney(&["replay", "last"]).out), @"
      0.00s  lead starts: Try it.
      0.00s  lead answers: an unmistakable answer
      0.00s  lead completed; spent $0.00001875, 51 tokens, 1 step

    replayed: 6 events; every decision was repeated under rules 8, with the same result
      hash    [hash]
      state   completed
      answer  an unmistakable answer
    ");
}

/// O22 (the chain): an altered entry is detected, and the place is named.
#[test]
fn o22_one_changed_byte_is_found_and_named() {
    let stage = TestFolder::new();
    stage.spinney(&["run", &stage.tree("", SAYS)]);
    let file = stage.home().join("journal.sqlite3");
    let mut bytes = std::fs::read(&file).unwrap();
    // As an event has it; the script has it without the quotes.
    let text = b"\"an unmistakable answer\"";
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at + 1] = b'A';
    std::fs::write(&file, bytes).unwrap();
    let diverged = stage.spinney(&["replay", "last", "--verify"]);
    assert_eq!((diverged.code, diverged.out.as_str()), (Some(1), ""));
    insta::assert_snapshot!(steady(&diverged.err), @"spinney: tree [tree] failed verification: the journal of tree [tree] is damaged after event 4: the bytes of the next batch do not match their hash");
    for snapshot in
        [&["events", "last"][..], &["show", "last", "lead"], &["window", "last", "lead"], &["costs"]]
    {
        let ended = stage.spinney(snapshot);
        assert_eq!(ended.code, Some(1), "{snapshot:?}: {}", ended.err);
    }
    assert_eq!(stage.spinney(&["ps", "--json"]).result()["state"], json!("completed"));
}

/// O22 (the chain): if any byte of the file is flipped, the tree is shown exactly as written, or an error names the
/// place.
#[test]
fn o22_no_flipped_byte_changes_history_unseen() {
    let stage = TestFolder::new();
    let script = "rules: [ { when: { turn: 1 }, call: [ { tool: look } ] }, { say: an unmistakable answer } ]\ntools: { look: { say: it } }";
    let hash = stage.spinney(&["run", &stage.tree("look", script), "--json"]).result()["event_hash"].clone();
    let hash = hash.as_str().unwrap();
    let events = stage.spinney(&["events", "last", "--json"]).out;
    let file = stage.home().join("journal.sqlite3");
    let good = std::fs::read(&file).unwrap();
    // Bytes of stored bodies, hashes and heads. The rest of the file is mostly empty.
    let places: Vec<usize> = (0..good.len()).filter(|at| good[*at] != 0).collect();
    let mut found = 0;
    for at in places.iter().step_by(places.len() / 60) {
        let mut bytes = good.clone();
        bytes[*at] ^= 0x11;
        std::fs::write(&file, bytes).unwrap();
        let verified = stage.spinney(&["replay", "last", "--verify"]);
        match verified.code {
            Some(0) => {
                assert!(verified.out.contains(hash), "byte {at}: {}", verified.out);
                assert_eq!(stage.spinney(&["events", "last", "--json"]).out, events, "byte {at}");
            }
            Some(1 | 2) => {
                found += 1;
                let names = [
                    "damaged",
                    "journal.sqlite3",
                    "no trees",
                    "no tree",
                    "its tail is cut or changed",
                    "which is altered",
                    "which is missing",
                ];
                assert!(names.iter().any(|name| verified.err.contains(name)), "byte {at}: {}", verified.err);
            }
            code => panic!("byte {at}: {code:?} {}", verified.err),
        }
    }
    std::fs::write(&file, good).unwrap();
    assert!(found > 20, "only {found} were found");
    assert_eq!(stage.spinney(&["replay", "last", "--expect", hash]).code, Some(0));
}

/// Someone who can write the file can write another history with a valid chain. Only a hash that was kept elsewhere
/// reveals that, and the documentation says so.
#[test]
fn a_rewritten_journal_is_detected_by_a_hash_kept_elsewhere() {
    let stage = TestFolder::new();
    let kept = stage.spinney(&["run", &stage.tree("", SAYS), "--json"]).result()["event_hash"].clone();
    std::fs::remove_dir_all(stage.home()).unwrap();
    let other = "rules: [ { say: another answer } ]";
    assert_eq!(stage.spinney(&["run", &stage.tree("", other)]).code, Some(0));
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
    let expected = stage.spinney(&["replay", "last", "--verify", "--expect", kept.as_str().unwrap()]);
    assert_eq!(expected.code, Some(1), "{}", expected.out);
    for page in ["docs/journal.md", "docs/cli.md"] {
        let page = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
        assert!(std::fs::read_to_string(&page).unwrap().contains("--expect"), "{page}");
    }
}

#[test]
fn only_a_tree_that_completed_has_an_answer() {
    let stage = TestFolder::new();
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
    for printed in [run.out, replayed.out] {
        assert!(printed.contains("  so far  a beginning") && !printed.contains("  answer "), "{printed}");
    }
}
