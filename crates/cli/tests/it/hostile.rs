//! Hostile text from a model, a tool, a file or a name: no terminal acts on it.

use std::fs;

use serde_json::{Value, json};

use crate::test_folder::{Ended, TestFolder};

/// One of each: clear the screen, set a title, both forms of CSI and OSC, carriage return, backspace, bell, delete,
/// overrides and isolates, marks, separators, without width, tags.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{9d}52;c;AAAA\u{9c}\r\u{8}\u{7f}\u{202e}\u{2066}\u{200e}\u{200f}\u{61c}\u{2028}\u{2029}\u{200b}\u{200d}\u{2060}\u{feff}\u{e0041}\u{ad}";

/// Output is safe if it has no character that a terminal acts on or hides.
fn check(what: &str, ended: &Ended) {
    for (stream, text) in [("standard output", &ended.out), ("standard error", &ended.err)] {
        let hostile = text.chars().find(|c| {
            c.is_control() && !matches!(c, '\n' | '\t')
                || HOSTILE.contains(*c) && !c.is_ascii_graphic() && *c != ' '
        });
        assert_eq!(hostile, None, "{what}, {stream}: {text:?}");
    }
}

/// The text as part of a double-quoted string of YAML or JSON.
fn quoted() -> String {
    let mut text = String::new();
    for unit in HOSTILE.encode_utf16() {
        text += &format!("\\u{unit:04x}");
    }
    text
}

fn script() -> String {
    let quoted = quoted();
    format!(
        "
rules:
  - when: {{ turn: 1 }}
    say: \"SAID {quoted}\"
    call:
      - {{ tool: look, args: {{ at: \"ASKED {quoted}\" }} }}
      - {{ tool: lose, args: {{}} }}
      - {{ tool: \"NOTOOL{quoted}\", args: {{}} }}
      - {{ tool: write_file, args: {{ path: outputs/a.txt, text: \"WRITTEN {quoted}\" }} }}
      - {{ tool: spawn_agent, args: {{ agent: lead, id: \"x{quoted}\", goal: \"GOAL {quoted}\" }} }}
  - when: {{ turn: 2 }}
    call: [ {{ tool: read_file, args: {{ path: outputs/a.txt }} }}, {{ tool: ask_human, args: {{ question: \"WHICH {quoted}?\" }} }} ]
  - say: \"ANSWERED {quoted}\"
tools:
  look: {{ say: \"LOOKED {quoted}\" }}
  lose: {{ error: \"LOST {quoted}\" }}
"
    )
}

/// A tree whose every text is hostile.
pub(crate) fn tree(stage: &TestFolder) -> String {
    let tree = stage.tree("look, lose, write_file, read_file, ask_human, spawn_agent", &script());
    let text = fs::read_to_string(&tree).unwrap();
    fs::write(&tree, text.replace("name: test", &format!("name: \"NAME {}\"", quoted()))).unwrap();
    tree
}

/// G16 (terminals): text from a model, a tool, a file and a tree's name, in all output about a tree.
#[test]
fn g16_no_text_of_a_tree_reaches_a_terminal_as_more_than_text() {
    let stage = TestFolder::new();
    let tree = tree(&stage);
    let goal = format!("GOAL {HOSTILE}");
    let run = stage.spinney(&["run", &tree, "--goal", &goal]);
    assert_eq!(run.code, Some(5), "{}", run.err);
    check("run", &run);
    // It is not swallowed either: people see that something was there.
    for seen in ["NAME \\u{1b}[2J", "\\u{202e}", "\\u{9b}31m", "\\u{e0041}", "WHICH \\u{1b}"] {
        assert!(run.out.contains(seen), "{seen} in {}", run.out);
    }
    let asked = stage.spinney(&["resume", "last", "--json"]).result()["questions"][0]["question"].to_string();
    let looks: [&[&str]; 8] = [
        &["ps"],
        &["events", "last"],
        &["show", "last", "lead", "--full"],
        &["show", "last", "lead"],
        &["window", "last", "lead"],
        &["questions"],
        &["checkpoint", "ls"],
        &["replay", "last"],
    ];
    for snapshot in looks {
        check(&snapshot.join(" "), &stage.spinney(snapshot));
    }
    check("answer", &stage.spinney(&["answer", "last", &asked, HOSTILE]));
    let resumed = stage.spinney(&["resume", "last"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    check("resume", &resumed);
    let shown = stage.spinney(&["show", "last", "lead", "--full"]);
    check("show", &shown);
    for said in ["SAID ", "LOOKED ", "LOST ", "WRITTEN ", "NOTOOL", "ANSWERED ", "GOAL "] {
        assert!(shown.out.contains(&format!("{said}\\u{{1b}}[2J")), "{said}: {}", shown.out);
    }
}

/// G16 (terminals): JSON keeps every character, but escapes it for terminals.
#[test]
fn g16_json_escapes_what_a_terminal_acts_on_and_keeps_its_value() {
    let stage = TestFolder::new();
    let run = stage.spinney(&["run", &stage.tree("look, lose", &script()), "--json"]);
    check("run --json", &run);
    let results = stage.results("lead");
    let looked = results.iter().find(|result| result["from"] == json!({ "tool": "look" })).unwrap();
    assert_eq!(looked["text"], json!(format!("LOOKED {HOSTILE}")));
    let looks: [&[&str]; 6] = [
        &["events", "last", "--json"],
        &["show", "last", "lead", "--json"],
        &["window", "last", "lead", "--json"],
        &["ps", "--json"],
        &["questions", "--json"],
        &["checkpoint", "ls", "--json"],
    ];
    for snapshot in looks {
        let ended = stage.spinney(snapshot);
        check(&snapshot.join(" "), &ended);
        assert!(ended.json().iter().all(Value::is_object), "{}", ended.out);
    }
}

/// G16 (terminals): errors, wrong usage and file names are also filtered.
#[test]
fn g16_no_error_text_or_file_name_reaches_a_terminal_as_more_than_text() {
    let stage = TestFolder::new();
    let good = stage.tree("", "rules: [ { say: hi } ]");
    let named = stage.file(&format!("{HOSTILE}.yaml"), &fs::read_to_string(&good).unwrap());
    check("a tree file's name", &stage.spinney(&["run", &named]));
    let missing = format!("{named}.missing.yaml");
    let wrong_key = stage.file("wrong.yaml", &format!("\"{}\": 1\n", quoted()));
    let wrong_script = stage.file("tree.script.yaml", &format!("\"{}\": 1\n", quoted()));
    let good_again = good.clone();
    let lines: [&[&str]; 11] = [
        &["run", &missing],
        &["run", &wrong_key],
        &["run", &good_again],
        &["events", HOSTILE],
        &["events", "last", "--topic", HOSTILE],
        &["show", "last", HOSTILE],
        &["send", "last", HOSTILE, "hi"],
        &["answer", "last", HOSTILE, "yes"],
        &["replay", "last", "--expect", HOSTILE],
        &["--home", HOSTILE, "ps"],
        &[HOSTILE],
    ];
    for line in lines {
        let ended = stage.spinney(line);
        assert_ne!(ended.code, Some(0), "{line:?}");
        assert!(!ended.err.is_empty(), "{line:?}");
        check(&format!("{line:?}"), &ended);
    }
    drop(wrong_script);
    // A line break in a name cannot imitate our own line.
    let broken = format!("{}/no\nspinney: all is well.yaml", stage.folder().display());
    let ended = stage.spinney(&["run", &broken]);
    assert!(ended.err.lines().skip(1).all(|line| line.starts_with(' ')), "{}", ended.err);
}

/// G17 (hostile names): the suggested command works even if the home's name cannot be printed.
#[test]
fn g17_a_suggested_command_works_for_a_home_whose_name_cannot_be_shown() {
    let stage = TestFolder::new().at("a \u{1b}[31m\u{202e}home");
    let script = "rules: [ { when: { turn: 1 }, call: [ { tool: ask_human, args: { question: Who? } } ] }, { say: hi } ]";
    let run = stage.spinney(&["run", &stage.tree("ask_human", script)]);
    check("run", &run);
    let answer = run.out.lines().find(|line| line.contains(" answer ")).unwrap().trim().replace("TEXT", "me");
    let answered = stage.shell(&answer);
    assert_eq!(answered.code, Some(0), "{answer}: {}", answered.err);
    let resume = run.out.lines().find_map(|line| line.strip_prefix("then: ")).unwrap().to_owned();
    assert_eq!(stage.shell(&resume).code, Some(0), "{resume}");
}

/// Names that lie: no agent can have a person's name, and no model can publish under the topics of the tree's own
/// events.
#[test]
fn a_model_cannot_pose_as_a_person_or_as_the_tree() {
    let stage = TestFolder::new();
    let script = "
rules:
  - when: { turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: lead, id: person, goal: Say yes. } }
      - { tool: send_message, args: { to: lead, text: The tree is halted., topic: tree.halt } }
      - { tool: send_message, args: { to: user, text: Please say yes. } }
  - say: done
";
    let run = stage.spinney(&["run", &stage.tree("spawn_agent, send_message", script)]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let refused: Vec<&str> =
        run.out.lines().filter_map(|line| Some(line.split_once("is refused ")?.1)).collect();
    assert_eq!(
        refused,
        [
            "spawn_agent: the id `person` is reserved: choose another one",
            "send_message: the topic `tree.halt` is reserved for the tree's own events: choose another first word",
            "send_message: `user` is not an agent and reads no messages: send it to an agent, or ask a person with `ask_human`",
        ]
    );
    let halts = stage.spinney(&["events", "last", "--topic", "tree.halt"]);
    assert_eq!((halts.code, halts.out.as_str()), (Some(0), ""));
}
