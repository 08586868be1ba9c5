//! Summaries of what leaves a window, as people see them: a call that is not a turn, a cut that names its summary, and
//! a step in the workspace.

use std::fs;

use serde_json::Value;

use crate::test_folder::{Ended, TestFolder};

const SCRIPT: &str = "
rules:
  - { when: { summary: true, turn: 13 }, fail: { kind: auth } }
  - { when: { summary: true }, say: 'Looks before turn {{ turn }}, and nothing found.' }
  - { when: { turn: 14 }, say: Enough is known. }
  - { say: 'Look {{ turn }}.', call: [ { tool: look, args: { number: '{{ turn }}' } } ] }
tools:
  look: { repeatable: true, say: 'LOOK' }
";

fn run(stage: &TestFolder) -> Ended {
    stage.file("tree.script.yaml", &SCRIPT.replace("LOOK", &"seen ".repeat(80)));
    let file = stage.file(
        "tree.yaml",
        "name: test\ngoal: Try it.\nbudget: { cost_usd: 1 }\nmodels:\n  fast: { provider: scripted, script: \
         tree.script.yaml, price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 } }\nentry: lead\nagents:\n  \
         lead: { model: fast, prompt: You lead., tools: [look], window: { size: 1200, compact: summary } }\n",
    );
    stage.spinney(&["run", &file])
}

#[test]
fn events_say_what_is_summed_up_and_what_tells_a_cut() {
    let stage = TestFolder::new();
    assert_eq!(run(&stage).code, Some(0));
    let events = stage.said(&["events", "last"]);
    let lines: Vec<&str> = events
        .lines()
        .filter(|line| ["summary", "sums up", "full window"].iter().any(|word| line.contains(word)))
        // The time differs in each run.
        .filter_map(|line| Some(line.split_once("lead  ")?.1))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    asks model fast for a summary (call 15): 878 tokens in, at most 24 out
    starts model fast for a summary, attempt 1: $0.0002495, 902 tokens held
    writes a summary: Looks before turn 8, and nothing found.  [902 tokens held, 888 used: 878 in, 10 out]
    has a full window: leaves out 6 messages of dialog and output, 537 tokens; summarised in event 48
    asks model fast for a summary (call 20): 819 tokens in, at most 24 out
    starts model fast for a summary, attempt 1: $0.00023475, 843 tokens held
    writes a summary: Looks before turn 10, and nothing found.  [843 tokens held, 829 used: 819 in, 10 out]
    has a full window: leaves out 4 messages of dialog and output, 358 tokens; summarised in event 64
    asks model fast for a summary (call 25): 819 tokens in, at most 24 out
    starts model fast for a summary, attempt 1: $0.00023475, 843 tokens held
    writes a summary: Looks before turn 12, and nothing found.  [843 tokens held, 829 used: 819 in, 10 out]
    has a full window: leaves out 4 messages of dialog and output, 358 tokens; summarised in event 81
    asks model fast for a summary (call 30): 819 tokens in, at most 24 out
    starts model fast for a summary, attempt 1: $0.00023475, 843 tokens held
    writes a summary: Looks before turn 14, and nothing found.  [843 tokens held, 829 used: 819 in, 10 out]
    has a full window: leaves out 4 messages of dialog and output, 358 tokens; summarised in event 97
    ");
}

#[test]
fn a_window_and_a_context_show_the_summary_in_them() {
    let stage = TestFolder::new();
    assert_eq!(run(&stage).code, Some(0));
    let window = stage.said(&["window", "lead"]);
    insta::assert_snapshot!(window.lines().take(7).collect::<Vec<_>>().join("\n"), @"
    lead of tree [id]: completed, as of event 101
      size      1,200 tokens: set by role `lead`
      preset    tools
      used      932 tokens of 11 messages, 77 %
      left out  18 messages of 1,611 tokens; last cut by event 98
      in short  120 tokens of context summarise what was left out
      summary   Looks before turn 14, and nothing found.
    ");
    insta::assert_snapshot!(stage.said(&["show", "lead"]).lines().take(3).collect::<Vec<_>>().join("\n"), @"
    lead of tree [id]: completed, as of event 101
    28 messages, 18 of them left out of its window
    summary of what was left out, by its model: Looks before turn 14, and nothing found.
    ");
    let json: Value = serde_json::from_str(&stage.said(&["window", "last", "lead", "--json"])).unwrap();
    assert!(json["summary"].as_str().is_some_and(|summary| summary.starts_with("Looks")), "{json}");
}

/// The history has the summary at the place where it was written; it is not an answer.
#[test]
fn a_summary_is_a_step_of_its_own_name() {
    let stage = TestFolder::new();
    assert_eq!(run(&stage).code, Some(0));
    let trees = fs::read_dir(stage.home().join("workspace")).unwrap();
    let tree = trees.map(|tree| tree.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let mut steps: Vec<_> =
        fs::read_dir(tree.join("lead/history")).unwrap().map(|step| step.unwrap().path()).collect();
    steps.sort();
    let read = |path: &std::path::PathBuf| -> Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let line = |step: Value| {
        let observation: String = step["observation"].as_str().unwrap().chars().take(43).collect();
        format!("{} {} {observation}", step["tool_name"].as_str().unwrap(), step["success"])
    };
    let lines: Vec<String> =
        steps.iter().map(read).map(line).filter(|line| !line.starts_with("look")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    agent:summary true Looks before turn 8, and nothing found.
    agent:summary true Looks before turn 10, and nothing found.
    agent:summary true Looks before turn 12, and nothing found.
    agent:summary true Looks before turn 14, and nothing found.
    agent:answer true Enough is known.
    ");
}

/// Everything is decided again from the journal alone.
#[test]
fn a_tree_with_summaries_replays() {
    let stage = TestFolder::new();
    assert_eq!(run(&stage).code, Some(0));
    let replayed = stage.spinney(&["replay", "last", "--verify"]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.err);
}
