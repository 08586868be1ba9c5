//! Tools that a tree file defines: a team's own scripts, called with checked arguments, in the box of their agent.

use std::fs;

use serde_json::json;

use crate::test_folder::TestFolder;

/// Shows its arguments, and whether it can read the call.
const SCRIPT: &str = r#"printf '<%s>' "$@"
grep -q '"text":' && echo ' read'
"#;

/// A tree whose lead calls `shout` with these arguments and says what came of it.
fn tree(stage: &TestFolder, args: &str) -> String {
    fs::create_dir_all(stage.folder().join("scripts")).unwrap();
    stage.file("scripts/shout.sh", SCRIPT);
    let rules = format!(
        "rules:\n  - {{ when: {{ turn: 1 }}, call: [{{ tool: shout, args: {args} }}] }}\n  - {{ say: '{{{{ last }}}}' }}\n"
    );
    stage.file("script.yaml", &rules);
    let tree = "name: test
goal: Try it.
budget: { cost_usd: 1 }
read: [scripts]
models:
  fast: { provider: scripted, script: script.yaml, context: 8000, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } }
tools:
  shout:
    description: Says a text in capitals.
    args:
      type: object
      properties: { text: { type: string, maxLength: 20 }, times: { type: integer } }
      required: [text]
      additionalProperties: false
    command: [sh, ./scripts/shout.sh, \"--times={{ times }}\", \"{{ text }}\"]
agents:
  lead: { model: fast, tools: [shout] }
";
    stage.file("tree.yaml", tree)
}

fn run(stage: &TestFolder, args: &str) -> serde_json::Value {
    let scripts = stage.folder().join("scripts");
    let ended = stage.spinney(&["run", &tree(stage, args), "--json", "--read", scripts.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    ended.result()["output"].clone()
}

/// A script is a tool of a tree, and no shell reads what it is called with. One in Python is among the tests with peers.
#[test]
fn a_script_is_a_tool_and_no_shell_reads_its_arguments() {
    let stage = TestFolder::new();
    let said = run(&stage, "{ text: \"so; echo $HOME `id`\", times: 2 }");
    let expected = "exit code 0\n[stdout]\n<--times=2><so; echo $HOME `id`> read";
    assert_eq!(said, json!(expected));
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
    // Without a value, its word is left out.
    assert_eq!(run(&stage, "{ text: so }"), json!("exit code 0\n[stdout]\n<so> read"));
}

/// What calls print is saved whole under numbered names of the tool's kind, is in the journal, and comes back
/// when the tree is resumed in an empty folder. A call that fails saves nothing.
#[test]
fn outputs_of_a_tool_with_a_kind_are_saved_under_numbered_names() {
    let stage = TestFolder::new();
    let path = tree(&stage, "{}");
    let call = |text: &str| format!("{{ tool: shout, args: {{ text: {text} }} }}");
    let script = format!(
        "rules:\n  - {{ when: {{ turn: 1 }}, call: [{}, {}] }}\n  - {{ when: {{ turn: 2 }}, call: [{}, {{ tool: ask_human, args: {{ question: Well? }} }}] }}\n  - {{ say: '{{{{ last }}}}' }}\n",
        call("one"),
        call("fail"),
        call("two"),
    );
    stage.file("script.yaml", &script);
    stage.file(
        "scripts/shout.sh",
        "[ \"$1\" = fail ] && { echo no; exit 3; }\nprintf '{\"text\": \"%s\"}' \"$1\"\n",
    );
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("    args:\n", "    kind: page\n    extension: json\n    args:\n");
    fs::write(&path, text.replace("tools: [shout]", "tools: [shout, ask_human]")).unwrap();
    let scripts = stage.folder().join("scripts");
    let ended = stage.spinney(&["run", &path, "--json", "--read", scripts.to_str().unwrap()]);
    assert_eq!(ended.code, Some(5), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("kept: outputs/page_001.json"), "{}", ended.out);
    let outputs = || {
        let tree =
            fs::read_dir(stage.folder().join(".spinney/workspace")).unwrap().next().unwrap().unwrap().path();
        tree.join("lead/outputs")
    };
    let read = |name: &str| fs::read_to_string(outputs().join(name)).unwrap_or_default();
    assert_eq!([read("page_001.json"), read("page_002.json")], [r#"{"text": "one"}"#, r#"{"text": "two"}"#]);
    assert_eq!(fs::read_dir(outputs()).unwrap().count(), 2);
    fs::remove_dir_all(outputs()).unwrap();
    assert_eq!(stage.spinney(&["answer", "yes"]).code, Some(0));
    let resumed = stage.spinney(&["resume", "last", "--read", scripts.to_str().unwrap()]);
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.out, resumed.err);
    assert_eq!([read("page_001.json"), read("page_002.json")], [r#"{"text": "one"}"#, r#"{"text": "two"}"#]);
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

#[test]
fn a_kind_of_outputs_is_a_plain_word() {
    let stage = TestFolder::new();
    let path = tree(&stage, "{}");
    let text = fs::read_to_string(&path).unwrap();
    for (keys, said) in [
        ("kind: ../up", "bad kind of outputs `../up`"),
        ("kind: page\n    extension: .json", "bad extension `.json`"),
        ("extension: json", "`extension` without `kind`"),
    ] {
        fs::write(&path, text.replace("    args:\n", &format!("    {keys}\n    args:\n"))).unwrap();
        let ended = stage.spinney(&["check", &path]);
        assert_eq!(ended.code, Some(2), "{}", ended.out);
        assert!(format!("{}{}", ended.out, ended.err).contains(said), "{said}: {}{}", ended.out, ended.err);
    }
}

#[test]
fn arguments_that_do_not_match_run_nothing() {
    let stage = TestFolder::new();
    for (args, said) in [
        ("{}", "`shout` was not called: \"text\" is a required property"),
        (
            "{ text: so, more: 1 }",
            "`shout` was not called: Additional properties are not allowed ('more' was unexpected)",
        ),
        (
            "{ text: -v }",
            "not started: `text` may not begin with `-`: the command would read it as an option",
        ),
    ] {
        assert_eq!(run(&stage, args), json!(said), "{args}");
    }
    assert!(
        run(&stage, "{ text: 123456789012345678901234567890, times: x }").to_string().contains("at /text")
    );
}

/// P17 (command tools): an agent without the tool runs nothing of it.
#[test]
fn p17_only_agents_with_the_tool_can_call_it() {
    let stage = TestFolder::new();
    let path = tree(&stage, "{ text: so }");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("tools: [shout] }", "tools: [list_files] }")).unwrap();
    let scripts = stage.folder().join("scripts");
    let ended = stage.spinney(&["run", &path, "--json", "--read", scripts.to_str().unwrap()]);
    assert!(!ended.out.contains("exit code") && ended.out.contains("shout"), "{}", ended.out);
}

/// The journal has what a tree is resumed from: its tools run after its process was killed and its files are gone.
#[test]
fn tools_of_a_tree_survive_its_process_and_its_file() {
    let stage = TestFolder::new();
    let path = tree(&stage, "{ text: so }");
    let script = "rules:\n  - { when: { turn: 1 }, call: [{ tool: ask_human, args: { question: Which text? } }] }\n  - { when: { turn: 2 }, call: [{ tool: shout, args: { text: late } }] }\n  - { say: '{{ last }}' }\n";
    stage.file("script.yaml", script);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("tools: [shout]", "tools: [shout, ask_human]")).unwrap();
    let scripts = stage.folder().join("scripts");
    let ended = stage.spinney(&["run", &path, "--json", "--read", scripts.to_str().unwrap()]);
    assert_eq!(ended.code, Some(5), "{}{}", ended.out, ended.err);
    fs::remove_file(&path).unwrap();
    fs::remove_file(stage.folder().join("script.yaml")).unwrap();
    let answered = stage.spinney(&["answer", "late"]);
    assert_eq!(answered.code, Some(0), "{}", answered.err);
    let resumed = stage.spinney(&["resume", "last", "--json", "--read", scripts.to_str().unwrap()]);
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.out, resumed.err);
    assert_eq!(resumed.result()["output"], json!("exit code 0\n[stdout]\n<late> read"));
}

#[test]
fn what_is_wrong_with_a_tool_is_said_at_its_place() {
    let stage = TestFolder::new();
    let path = tree(&stage, "{ text: so }");
    let text = fs::read_to_string(&path).unwrap();
    for (from, to, said) in [
        ("./scripts/shout.sh", "./scripts/none.py", "cannot find"),
        ("{{ text }}", "{{ txt }}", "`txt` is not among the `args`"),
        ("[sh,", "[\"{{ text }}\",", "the program itself cannot be an argument of the call"),
        ("      type: object\n", "      type: array\n", "the arguments of a call are an object"),
        ("  shout:\n", "  read_file:\n", "there is a tool `read_file` already"),
        ("read: [scripts]\n", "", "commands of `lead` cannot read"),
        ("    description: Says a text in capitals.\n", "", "description"),
        ("maxLength: 20", "maxLength: x", "bad `args`"),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replace(from, to)).unwrap();
        let checked = stage.spinney(&["check", &path]);
        let all = format!("{}{}", checked.out, checked.err);
        assert!(all.contains(said), "{said}: {all}");
    }
}
