//! A terminal that takes no more output does not hold up the tree that it shows.

use serde_json::json;

use crate::test_folder::TestFolder;

/// Tool calls in one answer: more events than wait for a view in memory.
const CALLS: usize = 500;

/// After Ctrl-S, writes to the terminal wait until Ctrl-Q.
#[test]
fn a_tree_ends_while_its_terminal_is_stopped_and_the_view_catches_up() {
    let stage = TestFolder::new();
    let calls: Vec<String> =
        (0..CALLS).map(|at| format!("{{ tool: count, args: {{ at: '{at}' }} }}")).collect();
    let script = format!(
        "
rules:
  - {{ when: {{ turn: 1 }}, call: [ {{ tool: look }} ] }}
  - {{ when: {{ turn: 2 }}, call: [ {} ] }}
  - say: done
tools: {{ look: {{ think_ms: 1500, say: it }}, count: {{ say: one more }} }}
",
        calls.join(", ")
    );
    let tree = stage.tree("look, count", &script);
    let mut terminal = stage.terminal(&["run", &tree], 80, 24);
    terminal.until("look {}");
    terminal.send("\u{13}");
    // A test that has not ended after some minutes is stopped by its runner.
    while stage.spinney(&["ps", "--json"]).json()[0]["state"] != json!("completed") {}
    assert!(!terminal.has_ended(), "it still has a result to show");
    let events = stage.spinney(&["ps", "--json"]).json()[0]["events"].as_u64().unwrap();
    assert!(events > 1_024, "{events}");
    terminal.send("\u{11}");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert!(ended.out.contains("completed after ") && ended.out.contains("done"), "{}", ended.out);
}
