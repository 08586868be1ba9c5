//! Servers of tools in tree files: asked for before they start, found when the tree starts, called by agents, and started
//! again when it is resumed. The server is this program itself.

use std::fs;
use std::path::Path;

use serde_json::json;
use spinney_testkit::tool_server::{serve_if_asked, tool_server_command};

use crate::test_folder::TestFolder;

/// The test that becomes the server.
const SERVER: &str = "mcp::this_program_is_a_server_when_a_box_starts_it";

/// Becomes the server when a box starts this program.
#[test]
#[expect(clippy::disallowed_methods, reason = "the server says which variables it has")]
fn this_program_is_a_server_when_a_box_starts_it() {
    serve_if_asked(std::env::args(), std::env::vars());
}

fn command(mood: &str) -> Vec<String> {
    let mut command = tool_server_command(&std::env::current_exe().unwrap(), SERVER, mood);
    command[0] = Path::new(&command[0]).canonicalize().unwrap().display().to_string();
    command
}

/// The folder of this program.
fn around() -> String {
    Path::new(&command("plain")[0]).parent().unwrap().display().to_string()
}

/// A tree whose lead makes these calls and says what came of the last one.
fn tree(stage: &TestFolder, mood: &str, tools: &str, calls: &[&str]) -> String {
    let rules: String = calls
        .iter()
        .enumerate()
        .map(|(turn, call)| format!("  - {{ when: {{ turn: {} }}, call: [{call}] }}\n", turn + 1))
        .collect();
    stage.file("script.yaml", &format!("rules:\n{rules}  - {{ say: '{{{{ last }}}}' }}\n"));
    let words = command(mood);
    let tree = format!(
        "name: test
goal: Try it.
budget: {{ cost_usd: 1 }}
read: [{around}]
models:
  fast: {{ provider: scripted, script: script.yaml, context: 8000, price: {{ input_per_mtok_usd: 1, output_per_mtok_usd: 1 }} }}
mcp:
  test: {{ command: {program}, args: {args}, read: [{around}], timeout: 20s }}
agents:
  lead: {{ model: fast, tools: {tools} }}
",
        around = around(),
        program = words[0],
        args = json!(words[1..]),
    );
    stage.file("tree.yaml", &tree)
}

fn allowed(mood: &str) -> Vec<String> {
    let server = format!("mcp:{}", command(mood).join(" "));
    ["--read", &around(), "--allow-box", &server].map(str::to_owned).into()
}

fn run(stage: &TestFolder, path: &str, mood: &str) -> crate::test_folder::Ended {
    let allowed = allowed(mood);
    let options: Vec<&str> = allowed.iter().map(String::as_str).collect();
    stage.spinney(&[&["run", path, "--json"], options.as_slice()].concat())
}

/// P17: an agent calls the tools that its role lists, with checked arguments, and no others.
#[test]
fn p17_agents_call_the_tools_of_servers_that_they_have() {
    let stage = TestFolder::new();
    let echo = "{ tool: test__echo, args: { text: so } }";
    let ended = run(&stage, &tree(&stage, "plain", "[test__echo]", &[echo]), "plain");
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(ended.result()["output"], json!("so"));
    assert!(ended.err.contains("starting 1 server of tools: test"), "{}", ended.err);
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));

    let wrong = "{ tool: test__echo, args: { text: 7 } }";
    let ended = run(&stage, &tree(&stage, "plain", "[test__echo]", &[wrong]), "plain");
    let said = ended.result()["output"].to_string();
    assert!(said.contains("`test__echo` was not called") && said.contains("at /text"), "{said}");

    let other = "{ tool: test__crash, args: {} }";
    let ended = run(&stage, &tree(&stage, "plain", "[test__echo]", &[other]), "plain");
    let said = ended.result()["output"].to_string();
    assert!(said.contains("test__crash") && !said.contains("lost"), "{said}");
}

/// A file alone starts no server. What was asked about is the whole command, so another one is asked about again.
#[test]
fn a_server_starts_only_with_permission() {
    let stage = TestFolder::new();
    let path = tree(&stage, "plain", "[test__echo]", &["{ tool: test__echo, args: { text: so } }"]);
    let refused = stage.spinney(&["run", &path, "--read", &around()]);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    let words = command("plain").join(" ");
    assert!(
        refused.err.contains(&format!("start the server `{words}` in a box, for `lead`")),
        "{}",
        refused.err
    );
    assert!(refused.err.contains(&format!("--allow-box 'mcp:{words}'")), "{}", refused.err);
    let checked = stage.spinney(&["check", &path]);
    assert!(
        checked.out.contains("start the server") && checked.code == Some(0),
        "{}{}",
        checked.out,
        checked.err
    );
    assert_eq!(run(&stage, &path, "other").code, Some(2));
    assert_eq!(run(&stage, &path, "plain").code, Some(0));
}

/// G28: a server that ends again and again costs its calls, and the tree continues.
#[test]
fn g28_a_tree_outlives_its_server() {
    let stage = TestFolder::new();
    let crash = "{ tool: test__crash, args: {} }";
    let echo = "{ tool: test__echo, args: { text: still } }";
    let path = tree(&stage, "plain", "[test__echo, test__crash]", &[crash, crash, echo]);
    let ended = run(&stage, &path, "plain");
    assert_eq!(
        (ended.code, &ended.result()["output"]),
        (Some(0), &json!("still")),
        "{}{}",
        ended.out,
        ended.err
    );
    assert!(ended.out.contains("lost: server `test` ended during this call"), "{}", ended.out);
    assert!(ended.err.contains("server test had ended and was started again (1 of 3)"), "{}", ended.err);
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// A tree whose server cannot be used does not start, and says why.
#[test]
fn g28_a_server_that_does_not_start_keeps_its_tree_from_starting() {
    let stage = TestFolder::new();
    let echo = "{ tool: test__echo, args: { text: so } }";
    let ended = run(&stage, &tree(&stage, "dying", "[test__echo]", &[echo]), "dying");
    assert!(
        ended.code != Some(0)
            && ended.err.contains("server `test`: it ended before it answered: exit code 3"),
        "{}",
        ended.err
    );
    let ended = run(&stage, &tree(&stage, "plain", "[test__ecko]", &[echo]), "plain");
    assert!(
        ended.code != Some(0) && ended.err.contains("server `test` has no tool `test__ecko`"),
        "{}",
        ended.err
    );
}

/// The journal has what the servers of a tree are started with again.
#[test]
fn servers_of_a_tree_start_again_when_it_is_resumed() {
    let stage = TestFolder::new();
    let ask = "{ tool: ask_human, args: { question: Which text? } }";
    let echo = "{ tool: test__echo, args: { text: late } }";
    let path = tree(&stage, "plain", "[test__echo, ask_human]", &[ask, echo]);
    let ended = run(&stage, &path, "plain");
    assert_eq!(ended.code, Some(5), "{}{}", ended.out, ended.err);
    fs::remove_file(&path).unwrap();
    assert_eq!(stage.spinney(&["answer", "late"]).code, Some(0));
    let refused = stage.spinney(&["resume", "last", "--read", &around()]);
    assert!(refused.code != Some(0) && refused.err.contains("--allow-box 'mcp:"), "{}", refused.err);
    let allowed = allowed("plain");
    let options: Vec<&str> = allowed.iter().map(String::as_str).collect();
    let resumed = stage.spinney(&[&["resume", "last", "--json"], options.as_slice()].concat());
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.out, resumed.err);
    assert_eq!(resumed.result()["output"], json!("late"));
}

#[test]
fn what_is_wrong_with_a_server_is_said_at_its_place() {
    let stage = TestFolder::new();
    let path = tree(&stage, "plain", "[test__echo]", &["{ tool: test__echo, args: { text: so } }"]);
    let text = fs::read_to_string(&path).unwrap();
    for (from, to, said) in [
        ("command: /", "command: ./none/", "cannot find"),
        ("timeout: 20s", "timeout: 2h", "`timeout` is out of bounds"),
        ("timeout: 20s", "env: [A=B]", "this is not the name of a variable"),
        ("timeout: 20s", "env: [OPENAI_API_KEY]", "server `test` would get the key in OPENAI_API_KEY"),
        ("timeout: 20s", "network: [example.org]", "which may connect to `example.org`, and `lead` may not"),
        ("timeout: 20s", "tools: [read]", "unknown tool `test__echo`"),
        ("tools: [test__echo]", "tools: [list_files]", "no agent has a tool of server `test`"),
        ("  test: {", "  te__st: {", "is not a valid server name"),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replace(from, to)).unwrap();
        let checked = stage.spinney(&["check", &path]);
        let all = format!("{}{}", checked.out, checked.err);
        assert!(all.contains(said), "{said}: {all}");
    }
}

/// Servers are looked at without a tree, and without a home.
#[test]
fn mcp_lists_tools_and_tries_one() {
    let stage = TestFolder::new();
    let path = tree(&stage, "plain", "[list_files]", &[]);
    let allowed = allowed("plain");
    let options: Vec<&str> = allowed.iter().map(String::as_str).collect();
    let listed = stage.spinney(&[&["mcp", "list", &path], options.as_slice()].concat());
    assert_eq!(listed.code, Some(0), "{}{}", listed.out, listed.err);
    assert!(listed.out.starts_with("1 server, started in "), "{}", listed.out);
    assert!(
        listed.out.contains("test has 18 tools") && listed.out.contains("  test__echo  The tool echo."),
        "{}",
        listed.out
    );
    let echo = ["mcp", "try", &path, "test__echo", r#"{ "text": "so" }"#];
    let tried = stage.spinney(&[&echo, options.as_slice()].concat());
    assert_eq!((tried.code, tried.out.as_str()), (Some(0), "so\n"), "{}", tried.err);
    let failed = stage.spinney(&[&["mcp", "try", &path, "test__fail"], options.as_slice()].concat());
    assert_eq!((failed.code, failed.out.as_str()), (Some(1), "no luck\n"), "{}", failed.err);
    let unknown = stage.spinney(&[&["mcp", "try", &path, "test__ecko"], options.as_slice()].concat());
    assert!(unknown.code != Some(0) && unknown.err.contains("test__echo"), "{}", unknown.err);
    let refused = stage.spinney(&["mcp", "list", &path]);
    assert!(refused.code != Some(0) && refused.err.contains("--allow-box 'mcp:"), "{}", refused.err);
    assert!(!stage.home().exists());
}
