//! Commands that are printed: they work as they are copied, in any home.

use crate::stage::Stage;

const ASKS: &str = "
rules:
  - when: { turn: 1 }
    call: [ { tool: ask_human, args: { question: Which colour? } } ]
  - say: 'You said {{ last }}'
";
const SPENDS: &str = "
rules:
  - when: { turn: 1 }
    usage: { input: 100, output: 800 }
    call: [ { tool: look } ]
  - say: done
tools: { look: { description: looks, say: seen } }
";
const SLOW: &str = "
rules: [ { when: { turn: 1 }, call: [ { tool: look } ] }, { say: done } ]
tools: { look: { think_ms: 500, say: seen } }
";

/// A home whose name a shell would take apart.
fn odd() -> Stage {
    Stage::new().at("it's a $HOME")
}

/// The command behind a label.
fn behind<'a>(text: &'a str, label: &str) -> &'a str {
    let line = text.lines().find(|line| line.trim_start().starts_with(label));
    line.unwrap_or_else(|| panic!("{label} in {text}")).trim_start().strip_prefix(label).unwrap().trim()
}

#[test]
fn a_question_is_answered_by_the_command_that_is_printed() {
    let stage = odd();
    let waiting = stage.spinney(&["run", &stage.tree("ask_human", ASKS)]);
    assert_eq!(stage.shell(behind(&waiting.out, "look ")).code, Some(0));
    let answer = waiting.out.lines().find(|line| line.ends_with(" TEXT")).unwrap();
    let answered = stage.shell(answer);
    assert_eq!(answered.code, Some(0), "{}", answered.err);
    let resumed = stage.shell(answered.err.trim_end().split_once("go on with: ").unwrap().1);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(resumed.out.contains("You said TEXT"), "{}", resumed.out);
}

#[test]
fn a_ceiling_is_raised_by_the_command_that_is_printed() {
    let stage = odd();
    let tree = stage.tree_with("budget: { cost_usd: 0.0022 }", "look", SPENDS);
    let halted = stage.spinney(&["run", &tree, "--json"]);
    let remedy = halted.result()["error"]["remedy"].as_str().unwrap().to_owned();
    let raised = stage.shell(remedy.split_once(": ").unwrap().1);
    assert_eq!(raised.code, Some(0), "{}", raised.err);
}

#[test]
fn a_stopped_tree_goes_on_or_is_given_up_by_the_commands_that_are_printed() {
    for (label, code) in [("go on", 0), ("give up", 0)] {
        let stage = odd();
        let mut running = stage.play(&["run", &stage.tree("look", SLOW)]);
        running.until("calls look");
        running.signal("INT");
        let done = stage.shell(behind(&running.end().out, label));
        assert_eq!(done.code, Some(code), "{label}: {}", done.err);
    }
}
