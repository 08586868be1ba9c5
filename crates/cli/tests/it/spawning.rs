//! Malformed spawns are refused and leave nothing behind.

use std::path::Path;

use crate::test_folder::TestFolder;

/// The names of everything below a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        all.push(path.file_name().unwrap().to_string_lossy().into_owned());
        if path.is_dir() {
            all.extend(names(&path));
        }
    }
    all
}

/// P16: a spawn with an unknown field, a bad id (`../x`), its own id, which would make it its own parent, or the id of
/// an existing agent is refused. No file and no agent appears.
#[test]
fn p16_a_malformed_spawn_is_rejected_and_no_file_or_agent_appears() {
    let stage = TestFolder::new();
    stage.file(
        "tree.script.yaml",
        "
rules:
  - { when: { agent: helper }, say: Helped. }
  - { when: { turn: 1 }, call: [ { tool: spawn_agent, args: { agent: helper, goal: Help., id: first } } ] }
  - when: { turn: 2 }
    call:
      - { tool: spawn_agent, args: { agent: helper, goal: Help., id: strange, spite: 1 } }
      - { tool: spawn_agent, args: { agent: helper, goal: Help., id: other, parent: other } }
      - { tool: spawn_agent, args: { agent: helper, goal: Help., id: ../x } }
      - { tool: spawn_agent, args: { agent: helper, goal: Help., id: lead } }
      - { tool: spawn_agent, args: { agent: helper, goal: Help., id: first } }
  - { say: done }
",
    );
    let tree = stage.file(
        "tree.yaml",
        "name: test
goal: Try it.
models: { fast: { provider: scripted, script: tree.script.yaml } }
entry: lead
agents:
  lead: { model: fast, tools: [spawn_agent] }
  helper: { model: fast, tools: [] }
",
    );
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    let results = stage.results("lead");
    assert!(
        results.len() == 6 && results[1..].iter().all(|result| result["is_error"] == true),
        "{results:?}"
    );
    let texts: Vec<&str> = results[1..].iter().map(|result| result["text"].as_str().unwrap()).collect();
    insta::assert_snapshot!(texts.join("\n"), @"
    bad arguments for `spawn_agent`: unknown field `spite`, expected one of `agent`, `goal`, `id`, `model`, `tools`, `budget`, `timeout`, `detach`, `share`, `output_schema`, `window`, `messages` at line 1 column 55; write one JSON object with the fields it takes
    bad arguments for `spawn_agent`: unknown field `parent`, expected one of `agent`, `goal`, `id`, `model`, `tools`, `budget`, `timeout`, `detach`, `share`, `output_schema`, `window`, `messages` at line 1 column 54; write one JSON object with the fields it takes
    bad arguments for `spawn_agent`: `../x` is not a valid agent id: 1 to 64 characters of a-z, 0-9, `_` and `-`, the first a letter or digit at line 1 column 44; write one JSON object with the fields it takes
    the id `lead` is taken: choose another one or leave it out
    the id `first` is taken: choose another one or leave it out
    ");

    // All agents, according to the journal and the folders.
    let events = stage.spinney(&["events", "last", "--json"]).json();
    let spawned: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "agent_spawned")
        .map(|event| event["agent"].as_str().unwrap())
        .collect();
    assert_eq!(spawned, ["lead", "first"]);
    let workspace =
        std::fs::read_dir(stage.home().join("workspace")).unwrap().next().unwrap().unwrap().path();
    let mut folders: Vec<String> = std::fs::read_dir(workspace)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    assert_eq!(folders, ["first", "lead"]);
    let all = names(stage.folder());
    assert!(all.iter().all(|name| !["x", "strange", "other"].contains(&name.as_str())), "{all:?}");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}
