//! Tools that need approval: the person who says yes has seen what it permits.

use std::fs;

use serde_json::{Value, json};

use crate::test_folder::TestFolder;

/// A script that calls a tool which needs approval, with these arguments.
fn approved(args: &Value) -> String {
    let args = args.to_string();
    format!(
        "rules:\n  - {{ when: {{ turn: 1 }}, call: [ {{ tool: put, args: {} }} ] }}\n  - {{ say: done }}\ntools: {{ put: {{ say: ok }} }}\n",
        json!(args)
    )
}

fn asks(stage: &TestFolder, args: &Value) -> String {
    let tree = stage.tree("put", &approved(args));
    let text = fs::read_to_string(&tree).unwrap();
    fs::write(&tree, text.replace("tools: [put]", "tools: [put], approvals: { put: ask }")).unwrap();
    tree
}

/// G15 (what is shown): a path after padding is visible, everything that is approved can be shown whole, and hidden
/// bytes are counted.
#[test]
fn g15_an_approval_shows_everything_that_it_allows() {
    let stage = TestFolder::new();
    let text = format!("{}END", "line\n".repeat(600));
    let args = json!({ "text": text, "pad": " ".repeat(2_500), "path": "../../etc/passwd", "mode": 7 });
    let run = stage.spinney(&["run", &asks(&stage, &args)]);
    assert_eq!(run.code, Some(5), "{}", run.err);
    let asked = &run.out[run.out.find("1 question to answer").unwrap()..];
    let lines: Vec<&str> = asked.lines().map(str::trim).collect();
    assert_eq!(lines[1], "lead asks: May `lead` call `put` with this? Answer yes, or say why not.");
    assert_eq!(lines[2], "path: \"../../etc/passwd\"");
    assert!(lines.contains(&"| END"), "{asked}");
    let loud = lines.iter().find(|line| line.starts_with("!! ")).unwrap();
    let (hidden, show_all) =
        loud.split_once(" BYTES ARE HIDDEN. See all of them before you say yes: ").unwrap();
    assert!(hidden.starts_with("!! 4,847 OF "), "{loud}");
    // The command in the note shows every byte.
    let shown = stage.shell(show_all);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert_eq!(shown.out.matches("| line\n").count(), 600);
    assert!(shown.out.contains(&" ".repeat(2_500)), "the padding is there");
    assert!(!shown.out.contains("HIDDEN"), "{}", shown.out);
    // If the screen is too small for all of it, the important part is repeated at the end.
    assert_eq!(shown.out.matches("path: \"../../etc/passwd\"").count(), 2);
    assert_eq!(shown.out.matches("May `lead` call `put`").count(), 2);
    let json = stage.spinney(&["questions", "--json"]).result();
    let whole: Value = serde_json::from_str(json["approves"]["args"].as_str().unwrap()).unwrap();
    assert_eq!((&json["approves"]["tool"], &whole), (&json!("put"), &args));
    let result = stage.spinney(&["resume", "last", "--json"]).result();
    assert_eq!(result["questions"][0]["approves"], json["approves"]);
}

/// G15 (what is shown): at a terminal, everything is printed above the prompt.
#[test]
fn g15_a_person_at_a_terminal_sees_all_of_it_before_the_answer() {
    let stage = TestFolder::new();
    let args =
        json!({ "pad": "x".repeat(5_000), "path": "../../etc/passwd", "note": "a\n> yes\nlead asks: fake" });
    let tree = asks(&stage, &args);
    let mut terminal = stage.terminal(&["run", &tree], 80, 24);
    terminal.until("\n>");
    terminal.send("yes\n");
    let ended = terminal.end();
    let out = &ended.out;
    assert_eq!(ended.code, Some(0), "{out}");
    let asked = out.find("May `lead` call `put` with this?").unwrap();
    let prompt = asked + out[asked..].find("\n> ").unwrap();
    let shown = &out[asked..prompt];
    assert!(shown.contains("path: \"../../etc/passwd\""), "{shown}");
    assert!(shown.contains(&"x".repeat(5_000)), "{shown}");
    assert!(shown.lines().skip(1).all(|line| line.starts_with("    ")), "{shown}");
}

/// G15: `always` is limited to what was shown (agent, tool, pattern): it can be narrowed and not widened, and calls like it
/// need no other question.
#[test]
fn g15_always_is_limited_to_what_was_shown_and_can_be_narrowed() {
    let stage = TestFolder::new();
    let call = |turn: u32, path: &str| {
        format!(
            "  - {{ when: {{ turn: {turn} }}, call: [ {{ tool: write_file, args: {{ path: {path}, text: x }} }} ] }}\n"
        )
    };
    let calls = [call(1, "outputs/a/1.md"), call(2, "outputs/a/2.md"), call(3, "outputs/b/1.md")].concat();
    let tree = stage.tree("write_file", &format!("rules:\n{calls}  - {{ say: done }}\n"));
    let text = fs::read_to_string(&tree).unwrap();
    let asking = text.replace("tools: [write_file]", "tools: [write_file], approvals: { write_file: ask }");
    assert_ne!(asking, text);
    fs::write(&tree, asking).unwrap();
    let run = stage.spinney(&["run", &tree]);
    assert_eq!(run.code, Some(5), "{}", run.err);
    let offer = "`always for this agent` or `always for this tree` allows calls with `outputs/a/*`, whatever the other values are, from now on";
    assert!(run.out.contains(offer), "{}", run.out);
    let question = stage.spinney(&["questions", "--json"]).result();
    assert_eq!(question["approves"]["always"], "outputs/a/*");
    let number = question["question"].to_string();
    for (answer, why) in [
        ("always", "write `always for this agent` or `always for this tree`"),
        ("always for this tree: *", "`*` is not within `outputs/a/*`, which was shown"),
        ("always for this tree: outputs/*", "`outputs/*` is not within `outputs/a/*`, which was shown"),
        ("always for this agent: outputs/a/2.md", "or does not cover the call itself"),
    ] {
        let refused = stage.spinney(&["answer", "last", &number, answer]);
        assert!(refused.code != Some(0) && refused.err.contains(why), "{answer}: {}", refused.err);
    }
    let answered = stage.spinney(&["answer", "last", &number, "always for this agent"]);
    assert_eq!(answered.code, Some(0), "{}", answered.err);
    // The second file is in the folder, the third is not.
    let resumed = stage.spinney(&["resume", "last"]);
    assert_eq!(resumed.code, Some(5), "{}", resumed.err);
    let events = stage.spinney(&["events", "last"]);
    let remembered = "may call `write_file` with `outputs/a/*` from now on, for this agent";
    assert!(events.out.contains(remembered), "{}", events.out);
    assert!(resumed.out.contains("wrote 1 bytes to outputs/a/2.md"), "{}", resumed.out);
    assert!(resumed.out.contains("path: \"outputs/b/1.md\""), "{}", resumed.out);
    let verified = stage.spinney(&["replay", "last", "--verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.err);
}

/// G15: the same at a terminal, with a narrower pattern.
#[test]
fn g15_a_person_at_a_terminal_narrows_what_is_remembered() {
    let stage = TestFolder::new();
    let args = json!({ "path": "outputs/notes/a.md", "text": "x" });
    let again = json!({ "path": "outputs/notes/b.md", "text": "x" });
    let call = |turn: u32, args: &Value| {
        format!("  - {{ when: {{ turn: {turn} }}, call: [ {{ tool: write_file, args: {args} }} ] }}\n")
    };
    let script =
        format!("rules:\n{}{}{}  - {{ say: done }}\n", call(1, &args), call(2, &args), call(3, &again));
    let tree = stage.tree("write_file", &script);
    let text = fs::read_to_string(&tree).unwrap();
    fs::write(
        &tree,
        text.replace("tools: [write_file]", "tools: [write_file], approvals: { write_file: ask }"),
    )
    .unwrap();
    let mut terminal = stage.terminal(&["run", &tree], 80, 24);
    terminal.until("\n>");
    terminal.send("always for this agent: outputs/notes/a.md\n");
    // The question, and not the line that says that it is asked: what is typed until then answers the first one.
    terminal.until("path: \"outputs/notes/b.md\"");
    terminal.send("no\n");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert_eq!(ended.out.matches("May `lead` call `write_file`").count(), 2, "{}", ended.out);
}
