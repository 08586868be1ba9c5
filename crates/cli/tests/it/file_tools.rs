//! The file tools in a tree: an agent writes, lists and reads its own folder, also after a restart, and refusals say
//! why.

use std::fs;

use crate::test_folder::{TestFolder, steady};

const SCRIPT: &str = "
rules:
  - { when: { turn: 1 }, call: [{ tool: write_file, args: { path: outputs/notes.md, text: Berlin. } }, { tool: write_file, args: { path: ../notes.md, text: Berlin. } }] }
  - { when: { turn: 2 }, call: [{ tool: ask_human, args: { question: Go on? } }] }
  - { when: { turn: 3 }, call: [{ tool: list_files }, { tool: read_file, args: { path: outputs/notes.md } }] }
  - { say: Done. }
";

/// All results of the agent's tools, as `events` prints them. The order of parallel results does not matter.
fn returned(stage: &TestFolder) -> String {
    let events = steady(&stage.spinney(&["events", "last"]).out);
    let lines = events.lines().filter(|line| line.contains("gets from") || line.contains("gets an error"));
    let mut lines: Vec<&str> = lines.filter_map(|line| Some(line.split_once("lead  ")?.1)).collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[test]
fn an_agent_writes_and_reads_its_own_files_also_after_a_restart() {
    let stage = TestFolder::new();
    let tree = stage.tree("write_file, read_file, list_files, ask_human", SCRIPT);
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(5));
    let answered = stage.spinney(&["answer", "last", "5", "yes"]);
    assert_eq!(answered.code, Some(0), "{}", answered.err);
    assert_eq!(stage.spinney(&["resume", "last"]).code, Some(0));
    insta::assert_snapshot!(returned(&stage), @"
    gets an error from write_file: `../notes.md` contains `.` or `..`: use letters, digits and `. _ - + = @ , ( )` with `/` between folders, and no name that begins or ends …
    gets from list_files: outputs/notes.md 7 bytes
    gets from read_file: Berlin.
    gets from write_file: wrote 7 bytes to outputs/notes.md
    ");
    let trees: Vec<_> = fs::read_dir(stage.home().join("workspace")).unwrap().flatten().collect();
    let [tree] = trees.as_slice() else { panic!("{trees:?}") };
    assert_eq!(fs::read_to_string(tree.path().join("lead/outputs/notes.md")).unwrap(), "Berlin.");
    let verified = stage.spinney(&["replay", "last", "--verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.err);
}

#[test]
fn a_tool_of_a_script_comes_before_a_file_tool() {
    let stage = TestFolder::new();
    let script = "
rules:
  - { when: { turn: 1 }, call: [{ tool: read_file, args: { path: anything } }] }
  - { say: Done. }
tools: { read_file: { say: as played } }
";
    assert_eq!(stage.spinney(&["run", &stage.tree("read_file", script)]).code, Some(0));
    assert_eq!(returned(&stage), "gets from read_file: as played");
}
