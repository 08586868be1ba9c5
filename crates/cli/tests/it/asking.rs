//! Questions at the terminal, while other agents continue.

use crate::pty::Pty;
use crate::scripts::ASKS;
use crate::test_folder::TestFolder;

/// Two helpers ask, and their lead is busy until it is cancelled.
const TWO_ASK: &str = "
rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: helper, id: one, goal: Ask for one. } }
      - { tool: spawn_agent, args: { agent: helper, id: two, goal: Ask for two. } }
      - { tool: hang }
  - when: { agent: helper, turn: 1, goal_contains: one }
    call: [ { tool: ask_human, args: { question: Which colour? } } ]
  - when: { agent: helper, turn: 1 }
    call: [ { tool: ask_human, args: { question: Which size? } } ]
  - say: 'I heard {{ last }}'
tools: { hang: { hang: true } }
";

fn two_ask(stage: &TestFolder) -> String {
    stage.file("two.script.yaml", TWO_ASK);
    stage.file(
        "two.yaml",
        "name: two
goal: Ask around.
budget: { cost_usd: 1 }
models:
  fast: { provider: scripted, script: two.script.yaml, price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 } }
agents:
  lead: { model: fast, tools: [spawn_agent, ask_human, hang], subagents: [helper] }
  helper: { model: fast, tools: [ask_human] }
entry: lead
",
    )
}

/// The first question of a running tree, and the others behind it.
fn open(stage: &TestFolder) -> Vec<(u64, String)> {
    let open = stage.spinney(&["questions", "--json"]).json();
    let question = |open: &serde_json::Value| {
        (open["question"].as_u64().unwrap(), open["text"].as_str().unwrap().to_owned())
    };
    open.iter().map(question).collect()
}

fn cancelled(stage: &TestFolder, terminal: Pty) -> String {
    assert_eq!(stage.spinney(&["cancel"]).code, Some(0));
    let ended = terminal.end();
    assert_eq!(ended.code, Some(4), "{}", ended.out);
    ended.out
}

/// The oldest question is asked first; what is typed stays while the view is drawn, and can be corrected.
#[test]
fn questions_are_answered_while_others_run() {
    let stage = TestFolder::new();
    let mut terminal = stage.terminal(&["run", &two_ask(&stage)], 80, 30);
    let asked = terminal.until("\n> ▏");
    assert!(asked.contains("lead/one asks: Which colour?"), "{asked}");
    assert!(asked.contains("hang {}"), "{asked}");
    terminal.send("blur\u{7f}");
    terminal.until("\n> blu▏");
    // Something happens meanwhile.
    assert_eq!(stage.spinney(&["send", "last", "lead", "Hurry."]).code, Some(0));
    assert_eq!(stage.spinney(&["pause", "last", "two"]).code, Some(0));
    let meanwhile = terminal.until("is paused");
    assert!(meanwhile.contains("\n> blu▏"), "{meanwhile}");
    assert_eq!(stage.spinney(&["unpause", "last", "two"]).code, Some(0));
    terminal.send("\u{1b}[De\n");
    let next = terminal.until("lead/two asks: Which size?");
    assert!(next.contains("\n> blue\n"), "{next}");
    terminal.until("I heard blue");
    terminal.until("\n> ▏");
    terminal.send("large\n");
    let answered = terminal.until("I heard large");
    assert!(!answered.contains("\n> ▏"), "{answered}");
    assert_eq!(open(&stage), []);
    let out = cancelled(&stage, terminal);
    assert!(out.contains("Which colour?\n> blue\n") && out.contains("Which size?\n> large\n"), "{out}");
}

/// An answer begun for a question that was answered elsewhere is not used for the next one.
#[test]
fn a_line_for_a_question_that_closed_is_not_used_for_the_next_one() {
    let stage = TestFolder::new();
    let mut terminal = stage.terminal(&["run", &two_ask(&stage)], 80, 30);
    terminal.until("\n> ▏");
    terminal.send("ye");
    terminal.until("\n> ye▏");
    let number = open(&stage).first().unwrap().0.to_string();
    assert_eq!(stage.spinney(&["answer", "last", &number, "red"]).code, Some(0));
    terminal.until("lead/two asks: Which size?");
    terminal.until("\n> ye▏");
    terminal.send("s\n");
    terminal.until("your line was not used");
    assert_eq!(open(&stage).len(), 1);
    terminal.until("\n> ▏");
    terminal.send("small\n");
    terminal.until("I heard small");
    cancelled(&stage, terminal);
}

/// Ctrl-D leaves the questions open and the rest continues. Ctrl-C once stops cleanly, twice at once; the terminal is as
/// it was (the end of every command on a terminal checks that).
#[test]
fn ctrl_d_leaves_a_question_open_and_ctrl_c_stops_as_ever() {
    let stage = TestFolder::new();
    let mut terminal = stage.terminal(&["run", &two_ask(&stage)], 80, 30);
    terminal.until("\n> ▏");
    terminal.send("\u{4}");
    terminal.until("questions stay open");
    terminal.until_hidden("\n> ▏");
    terminal.until("spinney answer");
    assert_eq!(open(&stage).len(), 2);
    cancelled(&stage, terminal);

    let stage = TestFolder::new();
    let mut terminal = stage.terminal(&["run", &two_ask(&stage)], 80, 30);
    terminal.until("\n> ▏");
    terminal.send("blu\u{3}");
    terminal.until("stopping: running calls finish");
    terminal.send("\u{3}");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(130), "{}", ended.out);

    let stage = TestFolder::new();
    let mut terminal = stage.terminal(&["run", &stage.tree("ask_human", ASKS)], 80, 24);
    terminal.until("\n> ▏");
    terminal.send("\u{3}");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(130), "{}", ended.out);
    assert!(ended.out.contains("spinney answer "), "{}", ended.out);
}

/// Asks for one of three things, and then for JSON.
const ASKS_IN_FORM: &str = "
rules:
  - when: { turn: 1 }
    call: [ { tool: ask_human, args: { question: Which one?, choices: [Red, blue, none] } } ]
  - when: { turn: 2 }
    call: [ { tool: ask_human, args: { question: How many?, answer_schema: { type: object, properties: { count: { type: integer } }, required: [count] } } } ]
  - say: 'I heard {{ last }}'
";

/// O14 (forms): a person sees the choices, types one or its number, and is asked again after anything else; the same for JSON.
#[test]
fn o14_choices_are_shown_and_anything_else_is_asked_again() {
    let stage = TestFolder::new();
    let tree = stage.tree("ask_human", ASKS_IN_FORM);
    let mut terminal = stage.terminal(&["run", &tree, "--plain"], 100, 40);
    let asked = terminal.until("or its number.");
    assert!(asked.contains("1) Red") && asked.contains("3) none"), "{asked}");
    terminal.send("green\n");
    terminal.until("has choices: choose one of");
    terminal.until("or its number.");
    terminal.send("1\n");
    terminal.until("Answer with JSON that fits:");
    terminal.send("three\n");
    terminal.until("JSON of another form");
    terminal.until("Answer with JSON that fits:");
    terminal.send("{\"count\": 3}\n");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert!(ended.out.contains("I heard {\"count\": 3}"), "{}", ended.out);
    assert_eq!(stage.results("lead")[0]["text"], "Red");

    // The same with commands.
    let stage = TestFolder::new();
    let waiting = stage.spinney(&["run", &stage.tree("ask_human", ASKS_IN_FORM), "--json"]);
    assert_eq!(waiting.code, Some(5), "{}", waiting.err);
    let open = stage.spinney(&["questions", "--json"]).json();
    assert_eq!(open[0]["choices"], serde_json::json!(["Red", "blue", "none"]));
    let refused = stage.spinney(&["answer", "green"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("`Red`, `blue`, `none`"), "{}", refused.err);
    assert_eq!(stage.spinney(&["answer", "last", &open[0]["question"].to_string(), "RED"]).code, Some(0));
    assert_eq!(stage.spinney(&["resume", "--json"]).code, Some(5));
    assert!(stage.spinney(&["questions", "--json"]).json()[0]["answer_schema"].is_object());
    assert_eq!(stage.spinney(&["answer", r#"{"count":"3"}"#]).code, Some(2));
    assert_eq!(stage.spinney(&["answer", r#"{"count":3}"#]).code, Some(0));
    let ended = stage.spinney(&["resume", "--json"]);
    assert_eq!(ended.result()["output"], serde_json::json!("I heard {\"count\":3}"));
}

/// With lines, a question is asked when everything else rests.
#[test]
fn without_the_live_view_a_question_is_asked_at_rest() {
    let stage = TestFolder::new();
    let mut terminal = stage.terminal(&["run", "--plain", &stage.tree("ask_human", ASKS)], 80, 24);
    terminal.until("\n>");
    terminal.send("blue\n");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert!(ended.out.contains("You said blue"), "{}", ended.out);
}

/// With `--plain`, a question is asked when it is there, while another agent works: not only when the tree rests.
#[test]
fn o13_lines_ask_while_others_run() {
    let stage = TestFolder::new();
    let mut terminal = stage.terminal(&["run", &two_ask(&stage), "--plain"], 80, 30);
    terminal.until("lead/one asks: Which colour?");
    terminal.send("blue\n");
    let next = terminal.until("lead/two asks: Which size?");
    assert!(next.contains("I heard blue") || open(&stage).len() <= 2, "{next}");
    terminal.send("large\n");
    terminal.until("I heard large");
    assert_eq!(open(&stage), []);
    cancelled(&stage, terminal);
}

/// O13 (without a terminal): `run` ends with the question only when nothing else can happen.
#[test]
fn o13_without_a_terminal_others_finish_before_the_run_ends_with_the_question() {
    let stage = TestFolder::new();
    let script = "
rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: asker, id: one, goal: Ask. } }
      - { tool: spawn_agent, args: { agent: worker, id: two, goal: Work. } }
  - when: { agent: asker, turn: 1 }
    call: [ { tool: ask_human, args: { question: Which colour? } } ]
  - when: { agent: worker }
    think_ms: 700
    say: I worked.
  - say: done
";
    stage.file("both.script.yaml", script);
    let tree = stage.file(
        "both.yaml",
        "name: both
goal: Ask and work.
budget: { cost_usd: 1 }
models:
  fast: { provider: scripted, script: both.script.yaml, price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 } }
agents:
  lead: { model: fast, tools: [spawn_agent, ask_human], subagents: [asker, worker] }
  asker: { model: fast, tools: [ask_human] }
  worker: { model: fast }
entry: lead
",
    );
    let ended = stage.spinney(&["run", &tree]);
    assert_eq!(ended.code, Some(5), "{}", ended.err);
    let (asked, worked) = (ended.out.find("Which colour?").unwrap(), ended.out.find("I worked.").unwrap());
    assert!(asked < worked, "{}", ended.out);
}

/// What a role says about its questions applies to those that say nothing else: the time, and what happens then. A question
/// that says it itself comes first.
#[test]
fn o13_the_policy_of_a_role_applies_to_its_questions() {
    let script = |more: &str| {
        format!(
            "
rules:
  - when: {{ turn: 1 }}
    call: [ {{ tool: ask_human, args: {{ question: Which colour?{more} }} }} ]
  - say: 'I heard {{{{ last }}}}'
"
        )
    };
    for (policy, more, code, part) in [
        ("{ timeout: 1ms, default: blue }", "", 0, "answer is used: blue"),
        ("{ timeout: 1ms, on_timeout: fail }", "", 0, "no answer"),
        ("{ timeout: 1ms, on_timeout: cancel }", "", 4, "cancelled"),
        ("{ timeout: 1d, default: blue }", ", timeout: 1ms, default: red", 0, "answer is used: red"),
    ] {
        let stage = TestFolder::new();
        stage.file("policy.script.yaml", &script(more));
        let tree = stage.file(
            "policy.yaml",
            &format!(
                "name: policy
goal: Ask.
budget: {{ cost_usd: 1 }}
models:
  fast: {{ provider: scripted, script: policy.script.yaml, price: {{ input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 }} }}
agents:
  lead: {{ model: fast, tools: [ask_human], questions: {policy} }}
"
            ),
        );
        let ran = stage.spinney(&["run", &tree]);
        assert!(matches!(ran.code, Some(5)) || ran.code == Some(code), "{policy}: {} {}", ran.out, ran.err);
        let ended = stage.spinney(&["resume"]);
        assert_eq!(ended.code, Some(code), "{policy}: {} {}", ended.out, ended.err);
        let events = stage.said(&["events"]);
        assert!(events.contains(part), "{policy}: {events}");
    }
}

/// A policy that says two things is refused with its place.
#[test]
fn a_policy_that_contradicts_itself_is_refused() {
    let stage = TestFolder::new();
    for (policy, part) in [
        ("{ on_timeout: default }", "`on_timeout: default` needs `default`"),
        ("{ on_timeout: cancel, default: x }", "`default` is never used"),
        ("{ on_timeout: never }", "known values: fail, default, cancel"),
    ] {
        let text = format!(
            "name: x\ngoal: x\nmodels: {{ m: {{ provider: scripted, script: x.script.yaml }} }}\nagents: {{ lead: {{ model: m, questions: {policy} }} }}\n"
        );
        stage.file("x.script.yaml", "rules: [{ say: x }]");
        let ended = stage.spinney(&["check", &stage.file("x.yaml", &text)]);
        assert!(ended.code == Some(2) && ended.out.contains(part), "{policy}: {} {}", ended.out, ended.err);
    }
}
