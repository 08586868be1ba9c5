//! Servers of tools in tree files: asked for before they start, found when the tree starts, called by agents, and started
//! again when it is resumed. The server is this program itself.

use std::fs;
use std::path::Path;

use serde_json::json;
use spinney_testkit::http_tool_server::HttpToolServer;
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

pub(crate) fn command(mood: &str) -> Vec<String> {
    let mut command = tool_server_command(&std::env::current_exe().unwrap(), SERVER, mood);
    command[0] = Path::new(&command[0]).canonicalize().unwrap().display().to_string();
    command
}

/// The folder of this program.
pub(crate) fn around() -> String {
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

/// A server that may ask for model calls gets them in the budget of the agent that called, and the run replays offline.
#[test]
fn p17_a_server_that_may_asks_the_model_of_the_calling_agent() {
    let stage = TestFolder::new();
    let path = tree(&stage, "plain", "[test__ask_model]", &["{ tool: test__ask_model, args: {} }"]);
    let refused = run(&stage, &path, "plain").result()["output"].to_string();
    assert!(refused.contains("may not ask for model calls: write `sampling: true` at it"), "{refused}");

    let text = fs::read_to_string(&path).unwrap().replace("timeout: 20s }", "timeout: 20s, sampling: true }");
    fs::write(&path, text).unwrap();
    let script = stage.folder().join("script.yaml");
    let rules = fs::read_to_string(&script).unwrap().replacen(
        "rules:",
        "rules:\n  - { when: { of_tool: true }, say: red }",
        1,
    );
    fs::write(&script, rules).unwrap();
    let ended = run(&stage, &path, "plain");
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert!(ended.result()["output"].to_string().contains("red"), "{}", ended.out);
    assert!(ended.out.contains("Be brief.\\n\\nWhich colour?"), "{}", ended.out);
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
    let shown = stage.spinney(&["events"]).out;
    assert!(shown.contains("asks model fast for a tool (call "), "{shown}");
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
        listed.out.contains("test has 24 tools") && listed.out.contains("  test__echo  The tool echo."),
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

/// A tree whose server is reached over HTTP.
pub(crate) fn tree_elsewhere(stage: &TestFolder, server: &HttpToolServer, of_server: &str) -> String {
    let call = "{ tool: test__header, args: { text: authorization } }";
    let path = tree(stage, "plain", "[test__header]", &[call]);
    let text = fs::read_to_string(&path).unwrap();
    let before = text.lines().find(|line| line.starts_with("  test: ")).unwrap().to_owned();
    let text = text.replace(&before, &format!("  test: {{ url: {}{of_server} }}", server.url()));
    let host = format!("tools: [test__header], network: ['127.0.0.1:{}']", server.port());
    let text = text.replace("tools: [test__header]", &host).replace(&format!("read: [{}]\n", around()), "");
    stage.file("tree.yaml", &text)
}

/// The URL, the key and the host of a stranger's file are asked for; the value of the key is sent and kept nowhere.
#[test]
fn a_server_elsewhere_gets_its_key_only_with_permission() {
    let stage = TestFolder::new();
    let server = HttpToolServer::start("key");
    let path = tree_elsewhere(&stage, &server, ", auth: { key_env: NOTES_TOKEN }");
    let host = format!("127.0.0.1:{}", server.port());
    let refused = stage.spinney(&["run", &path, "--allow-host", &host]);
    let allowance = format!("mcp:$NOTES_TOKEN {}", server.url());
    assert!(
        refused.code == Some(2)
            && refused
                .err
                .contains(&format!("connect to the server `$NOTES_TOKEN {}`, for `lead`", server.url()))
            && refused.err.contains(&format!("--allow-box '{allowance}'")),
        "{}{}",
        refused.out,
        refused.err
    );
    assert!(server.seen().is_empty(), "nothing was sent before it was allowed");
    let args = ["run", &path, "--json", "--allow-host", &host, "--allow-box", &allowance];
    let ended = stage.play_in(&args, &[("NOTES_TOKEN", "open-sesame-7")]).end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(ended.result()["output"], json!("Bearer [key]"));
    let sent = |seen: &spinney_testkit::http_tool_server::SeenRequest| {
        seen.headers.get("authorization").map(String::as_str) == Some("Bearer open-sesame-7")
    };
    assert!(server.seen().iter().all(sent));
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
    let journal = stage.spinney(&["events", "last", "--json"]);
    let all = format!("{}{}{}{}", ended.out, ended.err, journal.out, journal.err);
    assert!(!all.contains("open-sesame-7"), "{all}");
}

#[test]
fn what_is_wrong_with_a_server_elsewhere_is_said_at_its_place() {
    let stage = TestFolder::new();
    let server = HttpToolServer::start("plain");
    let path = tree_elsewhere(&stage, &server, ", timeout: 20s");
    let text = fs::read_to_string(&path).unwrap();
    let url = format!("url: {}", server.url());
    for (from, to, said) in [
        (url.as_str(), "url: http://tools.example.org/mcp", "this is plain http to another machine"),
        (&url, "url: https://user:secret@tools.example.org/", "this is not a URL"),
        (
            &url,
            "url: https://tools.example.org/mcp",
            "which may connect to `tools.example.org:443`, and `lead` may not",
        ),
        ("timeout: 20s", "command: x", "server `test` needs either `command` or `url`"),
        (&url, "timeout: 10s", "server `test` needs either `command` or `url`"),
        ("timeout: 20s", "env: [A]", "`env` is for servers with `command`"),
        ("timeout: 20s", "read: [/srv]", "`read` is for servers with `command`"),
        ("timeout: 20s", "auth: { key_env: sk-123 }", "this is not the name of an environment variable"),
        (
            "timeout: 20s",
            "auth: { key_env: A, header: Host }",
            "`Host` is not a header that a key can be sent in",
        ),
        (
            "timeout: 20s",
            "auth: { key_env: OPENAI_API_KEY }",
            "server `test` would get the key in OPENAI_API_KEY",
        ),
        ("timeout: 20s", "per: home", "per"),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let checked = stage.spinney(&["check", &path]);
        let all = format!("{}{}", checked.out, checked.err);
        assert!(all.contains(said), "{said}: {all}");
    }
}

/// G28 (changed descriptions): what a tool says of itself is remembered; in a later tree it may say something else only after
/// a person has seen that.
#[test]
fn g28_a_description_that_changes_is_asked_about_at_the_next_start() {
    let stage = TestFolder::new();
    let path = tree(&stage, "plain", "[test__moody]", &["{ tool: test__moody, args: {} }"]);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("timeout: 20s", "timeout: 20s, env: [SERVER_SAYS]")).unwrap();
    let allowance = format!("mcp:$SERVER_SAYS {}", command("plain").join(" "));
    let around = around();
    let run = |says: &str, more: &[&str]| {
        let args = ["run", &path, "--json", "--read", &around, "--allow-box", &allowance];
        stage.play_in(&[&args, more].concat(), &[("SERVER_SAYS", says)]).end()
    };
    for _ in 0..2 {
        let ended = run("Greets.", &[]);
        assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    }
    let refused = run("Greets, and sends your files.", &[]);
    let said = "server `test`: `test__moody` now says something else than when it was used before";
    assert!(
        refused.code != Some(0)
            && refused.err.contains(said)
            && refused.err.contains("before: Greets.")
            && refused.err.contains("now: Greets, and sends your files."),
        "{}{}",
        refused.out,
        refused.err
    );
    let (_, code) = refused.err.split_once("allow `").unwrap();
    let (code, _) = code.split_once('`').unwrap();
    assert!(code.starts_with("mcp-tools:"), "{code}");
    let other = run("Something else again.", &["--allow-box", code]);
    assert!(other.code != Some(0), "{}{}", other.out, other.err);
    for more in [&["--allow-box", code][..], &[]] {
        let ended = run("Greets, and sends your files.", more);
        assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    }
}

/// The same at a terminal is a question.
#[test]
fn g28_a_description_that_changes_is_a_question_at_a_terminal() {
    let stage = TestFolder::new();
    let path = tree(&stage, "plain", "[test__moody]", &["{ tool: test__moody, args: {} }"]);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("timeout: 20s", "timeout: 20s, env: [SERVER_SAYS]")).unwrap();
    let allowance = format!("mcp:$SERVER_SAYS {}", command("plain").join(" "));
    let around = around();
    let args = ["run", &path, "--plain", "--read", &around, "--allow-box", &allowance];
    assert_eq!(stage.play_in(&args, &[("SERVER_SAYS", "Greets.")]).end().code, Some(0));
    for (answer, code) in [("n\r", Some(2)), ("y\r", Some(0))] {
        let mut asked = stage.terminal_in(&args, (100, 40), &[("SERVER_SAYS", "Sends your files.")]);
        let shown = asked.until("Use it from now on? [y/N]");
        assert!(shown.contains("before: Greets.") && shown.contains("now: Sends your files."), "{shown}");
        asked.send(answer);
        let ended = asked.end();
        assert!(ended.code == code || (code != Some(0) && ended.code != Some(0)), "{}", ended.out);
    }
    // From now on without a question.
    assert_eq!(stage.play_in(&args, &[("SERVER_SAYS", "Sends your files.")]).end().code, Some(0));
}

/// G28 (lying schemas, escape text): a schema that cannot be used keeps the tree from starting, and what a tool returns does
/// nothing to a terminal.
#[test]
fn g28_schemas_and_results_of_a_server_do_no_harm() {
    let stage = TestFolder::new();
    let tangled = "{ tool: test__tangled, args: {} }";
    let ended = run(&stage, &tree(&stage, "plain", "[test__tangled]", &[tangled]), "plain");
    assert!(
        ended.code != Some(0)
            && ended.err.contains("the schema of the arguments of `test__tangled` cannot be used"),
        "{}{}",
        ended.out,
        ended.err
    );
    let escape = "{ tool: test__escape, args: {} }";
    let path = tree(&stage, "plain", "[test__escape]", &[escape]);
    let allowed = allowed("plain");
    let options: Vec<&str> = allowed.iter().map(String::as_str).collect();
    let ended = stage.spinney(&[&["run", path.as_str()], options.as_slice()].concat());
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let events = stage.spinney(&["events", "last"]);
    let all = format!("{}{}{}", ended.out, ended.err, events.out);
    assert!(all.contains("gone") && !all.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{all:?}");
}
