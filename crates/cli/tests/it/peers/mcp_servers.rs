//! MCP servers of the protocol's own organisation, in boxes and over HTTP: listed, called, refused, timed out, killed, and
//! asking a person.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use spinney_testkit::http_tool_server::HttpToolServer;

use super::peer::installed;
use crate::test_folder::{Ended, TestFolder};

/// A server as a tree file has it, and what has to be allowed for it.
struct Server {
    keys: String,
    /// As the permission has it.
    allowance: String,
    /// Options beside that.
    options: Vec<String>,
    /// Keys of the agent.
    role: String,
}

fn packages() -> PathBuf {
    installed().canonicalize().unwrap()
}

fn script(package: &str) -> String {
    let script = format!("packages/node_modules/@modelcontextprotocol/{package}/dist/index.js");
    packages().join(script).display().to_string()
}

impl Server {
    /// A program with its arguments.
    fn program(words: &[String], more: &str) -> Self {
        let installed = packages().display().to_string();
        let (program, args) = (&words[0], json!(words[1..]));
        let keys = format!("command: {program}, args: {args}, read: [{installed}]{more}");
        Self {
            keys,
            allowance: format!("mcp:{}", words.join(" ")),
            options: vec!["--read".to_owned(), installed],
            role: String::new(),
        }
    }

    fn node(package: &str, args: &[&str], more: &str) -> Self {
        let node = packages().join("node").canonicalize().unwrap().display().to_string();
        let args = args.iter().map(|arg| (*arg).to_owned());
        let words: Vec<String> = [node, script(package)].into_iter().chain(args).collect();
        Self::program(&words, more)
    }

    fn python(module: &str, args: &[&str], more: &str) -> Self {
        let python = packages().join("python/bin/python").display().to_string();
        let words = [python.clone(), "-m".to_owned(), module.to_owned()];
        let words: Vec<String> = words.into_iter().chain(args.iter().map(|arg| (*arg).to_owned())).collect();
        let mut server = Self::program(&words, more);
        // The interpreter of a virtual environment may be elsewhere, and then has to be granted.
        let base = Command::new(&python).args(["-c", "import sys; print(sys.base_prefix)"]).output().unwrap();
        let base = String::from_utf8(base.stdout).unwrap().trim().to_owned();
        if !base.starts_with("/usr") {
            server.keys = server.keys.replacen("read: [", &format!("read: [{base}, "), 1);
            server.options.extend(["--read".to_owned(), base]);
        }
        server
    }

    fn with_options(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|option| (*option).to_owned()));
        self
    }

    /// A tree file with it, whose lead calls these tools and says what came of the last one.
    fn file(&self, stage: &TestFolder, calls: &[(&str, Value)]) -> String {
        let rule = |(turn, (tool, args)): (usize, &(&str, Value))| {
            format!("  - {{ when: {{ turn: {} }}, call: [{{ tool: {tool}, args: {args} }}] }}\n", turn + 1)
        };
        let rules: String = calls.iter().enumerate().map(rule).collect();
        stage.file("script.yaml", &format!("rules:\n{rules}  - {{ say: '{{{{ last }}}}' }}\n"));
        let mut tools: Vec<&str> = calls.iter().map(|(tool, _)| *tool).collect();
        tools.dedup();
        let folders: String = ["--read", "--write"]
            .iter()
            .filter_map(|option| {
                let pairs = self.options.chunks(2).filter(|pair| pair[0] == *option);
                let paths: Vec<&str> = pairs.map(|pair| pair[1].as_str()).collect();
                (!paths.is_empty()).then(|| format!("{}: [{}]\n", &option[2..], paths.join(", ")))
            })
            .collect();
        let tree = format!(
            "name: test
goal: Try it.
budget: {{ cost_usd: 1 }}
{folders}models:
  fast: {{ provider: scripted, script: script.yaml, context: 64000, price: {{ input_per_mtok_usd: 1, output_per_mtok_usd: 1 }} }}
mcp:
  peer: {{ {keys} }}
agents:
  lead: {{ model: fast, tools: {tools}{role} }}
",
            keys = self.keys,
            tools = json!(tools),
            role = self.role,
        );
        stage.file("tree.yaml", &tree)
    }

    fn args<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        let options = self.options.iter().map(String::as_str);
        words.iter().copied().chain(options).chain(["--allow-box", &self.allowance]).collect()
    }

    /// Calls a tool by hand.
    fn tried(&self, stage: &TestFolder, tool: &str, args: &Value, environment: &[(&str, &str)]) -> Ended {
        let (file, args) = (self.file(stage, &[(tool, args.clone())]), args.to_string());
        stage.play_in(&self.args(&["mcp", "try", &file, tool, &args]), environment).end()
    }
}

fn said(ended: &Ended) -> String {
    format!("{}{}", ended.out, ended.err)
}

#[test]
fn everything_is_listed_called_refused_and_timed_out() {
    let stage = TestFolder::new();
    let server = Server::node("server-everything", &["stdio"], ", timeout: 2s");
    let file = server.file(&stage, &[("peer__echo", json!({}))]);
    let listed = stage.spinney(&server.args(&["mcp", "list", &file]));
    assert_eq!(listed.code, Some(0), "{}", said(&listed));
    for tool in ["peer__echo", "peer__get-sum", "peer__read_resource", "peer__get_prompt"] {
        assert!(listed.out.contains(&format!("  {tool}  ")), "{tool}: {}", listed.out);
    }
    let echo = server.tried(&stage, "peer__echo", &json!({ "message": "so" }), &[]);
    assert_eq!((echo.code, echo.out.as_str()), (Some(0), "Echo: so\n"), "{}", echo.err);
    let image = server.tried(&stage, "peer__get-tiny-image", &json!({}), &[]);
    assert!(image.code == Some(0) && image.out.contains("image/png"), "{}", said(&image));
    let resources = server.tried(&stage, "peer__list_resources", &json!({}), &[]);
    assert!(resources.code == Some(0) && resources.out.contains("demo://resource/"), "{}", said(&resources));
    let wrong = server.tried(&stage, "peer__get-sum", &json!({ "a": "x", "b": 1 }), &[]);
    assert_eq!(wrong.code, Some(1), "{}", said(&wrong));
    let slow = json!({ "duration": 60, "steps": 2 });
    let late = server.tried(&stage, "peer__trigger-long-running-operation", &slow, &[]);
    assert!(late.code == Some(1) && late.out.contains("timed out after 2 s"), "{}", said(&late));
}

/// A server whose process is killed during a call is started again, and the call is made once more: its tool says that this
/// changes nothing.
#[test]
fn everything_is_killed_during_a_call_and_called_again() {
    let stage = TestFolder::new();
    let server = Server::node("server-everything", &["stdio"], ", timeout: 100s");
    let slow = ("peer__trigger-long-running-operation", json!({ "duration": 4, "steps": 2 }));
    let file = server.file(&stage, &[slow, ("peer__echo", json!({ "message": "still" }))]);
    let mut playing = stage.play(&server.args(&["run", &file, "--json"]));
    playing.until("\"call_started\"");
    playing.until("peer__trigger-long-running-operation");
    while !kill_below(playing.pid(), &script("server-everything")) {
        std::thread::yield_now();
    }
    let ended = playing.end();
    assert_eq!((ended.code, &ended.result()["output"]), (Some(0), &json!("Echo: still")), "{}", said(&ended));
    assert!(ended.out.contains("Long running operation completed"), "{}", ended.out);
}

/// Kills the processes below this one whose command line has this word.
fn kill_below(parent: u32, word: &str) -> bool {
    let is_it = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split('\0').nth(1) == Some(word))
    };
    let found: Vec<u32> =
        spinney_testkit::processes::processes_below(parent).into_iter().filter(is_it).collect();
    for pid in &found {
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    }
    !found.is_empty()
}

/// A question of the server is answered by a person from another terminal.
#[test]
fn everything_asks_a_person() {
    let stage = TestFolder::new();
    let server = Server::node("server-everything", &["stdio"], "");
    let file = server.file(&stage, &[("peer__trigger-elicitation-request", json!({}))]);
    let mut playing = stage.play(&server.args(&["run", &file, "--json"]));
    playing.until("\"question_asked\"");
    let asked = stage.spinney(&["questions"]);
    assert!(asked.out.contains("server `peer` asks: "), "{}", said(&asked));
    let answered = stage.spinney(&["answer", r#"{ "name": "Ada", "check": true }"#]);
    assert_eq!(answered.code, Some(0), "{}", said(&answered));
    let ended = playing.end();
    assert_eq!(ended.code, Some(0), "{}", said(&ended));
    assert!(ended.result()["output"].to_string().contains("Ada"), "{}", said(&ended));
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// A server that may ask for model calls gets what the model of the calling agent says.
#[test]
fn everything_asks_the_model() {
    let stage = TestFolder::new();
    let server = Server::node("server-everything", &["stdio"], ", sampling: true");
    let asked = json!({ "prompt": "Which colour?", "maxTokens": 50 });
    let file = server.file(&stage, &[("peer__trigger-sampling-request", asked)]);
    let script = stage.folder().join("script.yaml");
    let rules = fs::read_to_string(&script).unwrap();
    fs::write(&script, rules.replacen("rules:", "rules:\n  - { when: { of_tool: true }, say: red }", 1))
        .unwrap();
    let ended = stage.play(&server.args(&["run", &file, "--json"])).end();
    assert_eq!(ended.code, Some(0), "{}", said(&ended));
    assert!(ended.result()["output"].to_string().contains("red"), "{}", said(&ended));
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// The server over HTTP, outside of any box, until this is dropped.
struct OverHttp {
    child: Child,
    port: u16,
}

impl OverHttp {
    fn everything() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(packages().join("node"));
        command.args([&script("server-everything"), "streamableHttp"]).env("PORT", port.to_string());
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let listens = |line: &String| line.contains("listening on port");
        let mut lines = log.lines().map_while(Result::ok);
        assert!(lines.any(|line| listens(&line)), "it does not listen");
        // What it writes later is read, or it would stop.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port }
    }

    fn server(&self, more: &str) -> Server {
        let url = format!("http://127.0.0.1:{}/mcp", self.port);
        Server {
            keys: format!("url: {url}{more}"),
            allowance: format!("mcp:{url}"),
            options: vec!["--allow-host".to_owned(), format!("127.0.0.1:{}", self.port)],
            role: format!(", network: ['127.0.0.1:{}']", self.port),
        }
    }
}

impl Drop for OverHttp {
    fn drop(&mut self) {
        // One that has ended on its own cannot be killed, and that is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn everything_over_http_is_listed_called_timed_out_and_killed() {
    let stage = TestFolder::new();
    let peer = OverHttp::everything();
    let server = peer.server(", timeout: 2s");
    let file = server.file(&stage, &[("peer__echo", json!({}))]);
    let listed = stage.spinney(&server.args(&["mcp", "list", &file]));
    assert!(listed.code == Some(0) && listed.out.contains("  peer__echo  "), "{}", said(&listed));
    let echo = server.tried(&stage, "peer__echo", &json!({ "message": "so" }), &[]);
    assert_eq!((echo.code, echo.out.as_str()), (Some(0), "Echo: so\n"), "{}", echo.err);
    let slow = json!({ "duration": 60, "steps": 2 });
    let late = server.tried(&stage, "peer__trigger-long-running-operation", &slow, &[]);
    assert!(late.code == Some(1) && late.out.contains("timed out after 2 s"), "{}", said(&late));
    drop(peer);
    let gone = server.tried(&stage, "peer__echo", &json!({ "message": "so" }), &[]);
    assert!(gone.code != Some(0) && gone.err.contains("it cannot be reached"), "{}", said(&gone));
}

#[test]
fn everything_over_http_asks_a_person() {
    let stage = TestFolder::new();
    let peer = OverHttp::everything();
    let server = peer.server("");
    let file = server.file(&stage, &[("peer__trigger-elicitation-request", json!({}))]);
    let mut playing = stage.play(&server.args(&["run", &file, "--json"]));
    playing.until("\"question_asked\"");
    assert_eq!(stage.spinney(&["answer", r#"{ "name": "Ada" }"#]).code, Some(0));
    let ended = playing.end();
    assert_eq!(ended.code, Some(0), "{}", said(&ended));
    assert!(ended.result()["output"].to_string().contains("Ada"), "{}", said(&ended));
}

/// The server of files has the folders that it was granted, and the box sees to it.
#[test]
fn filesystem_has_its_folder_and_no_other() {
    let stage = TestFolder::new();
    let folder = stage.folder().canonicalize().unwrap().join("shared");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("note.txt"), "two bottles").unwrap();
    let folder = folder.display().to_string();
    let server = Server::node("server-filesystem", &[&folder], &format!(", write: [{folder}]"))
        .with_options(&["--write", &folder]);
    let args = json!({ "path": format!("{folder}/note.txt") });
    let read = server.tried(&stage, "peer__read_text_file", &args, &[]);
    assert!(read.code == Some(0) && read.out.starts_with("two bottles"), "{}", said(&read));
    let args = json!({ "path": format!("{folder}/made.txt"), "content": "made" });
    let written = server.tried(&stage, "peer__write_file", &args, &[]);
    assert_eq!(written.code, Some(0), "{}", said(&written));
    assert_eq!(fs::read_to_string(format!("{folder}/made.txt")).unwrap(), "made");
    let outside = stage.file("private.txt", "not for servers");
    let refused = server.tried(&stage, "peer__read_text_file", &json!({ "path": outside }), &[]);
    assert!(refused.code == Some(1) && !refused.out.contains("not for servers"), "{}", said(&refused));
}

#[test]
fn memory_remembers_in_a_file_that_it_was_granted() {
    let stage = TestFolder::new();
    let folder = stage.folder().canonicalize().unwrap().join("memory");
    fs::create_dir(&folder).unwrap();
    let folder = folder.display().to_string();
    let mut server =
        Server::node("server-memory", &[], &format!(", env: [MEMORY_FILE_PATH], write: [{folder}]"))
            .with_options(&["--write", &folder]);
    server.allowance = server.allowance.replacen("mcp:", "mcp:$MEMORY_FILE_PATH ", 1);
    let place = format!("{folder}/memory.jsonl");
    let environment = [("MEMORY_FILE_PATH", place.as_str())];
    let entity = json!({ "name": "Ada", "entityType": "person", "observations": ["buys milk"] });
    let created = json!({ "entities": [entity] });
    let created = server.tried(&stage, "peer__create_entities", &created, &environment);
    assert_eq!(created.code, Some(0), "{}", said(&created));
    let graph = server.tried(&stage, "peer__read_graph", &json!({}), &environment);
    assert!(graph.code == Some(0) && graph.out.contains("buys milk"), "{}", said(&graph));
    assert!(fs::read_to_string(&place).unwrap().contains("Ada"));
}

#[test]
fn git_reads_a_repository_that_it_was_granted() {
    let stage = TestFolder::new();
    let folder = stage.folder().canonicalize().unwrap().join("repository");
    fs::create_dir(&folder).unwrap();
    let git = |args: &[&str]| {
        let names = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
        let status = Command::new("git").arg("-C").arg(&folder).args(names).args(args).status();
        assert!(status.unwrap().success(), "{args:?}");
    };
    git(&["init", "--quiet"]);
    fs::write(folder.join("note.txt"), "two bottles").unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "The first note"]);
    let folder = folder.display().to_string();
    let installed = packages().display().to_string();
    let mut server =
        Server::python("mcp_server_git", &["--repository", &folder], "").with_options(&["--read", &folder]);
    server.keys = server.keys.replace(&format!("{installed}]"), &format!("{installed}, {folder}]"));
    let log = server.tried(&stage, "peer__git_log", &json!({ "repo_path": folder }), &[]);
    assert!(log.code == Some(0) && log.out.contains("The first note"), "{}", said(&log));
    let other = server.tried(&stage, "peer__git_log", &json!({ "repo_path": "/" }), &[]);
    assert_eq!(other.code, Some(1), "{}", said(&other));
}

/// The server of pages reaches the hosts that it was granted, through the proxy of its box, and no others. To make text of a
/// page, it would write beside its own files.
#[test]
fn fetch_reaches_the_hosts_that_it_was_granted() {
    let stage = TestFolder::new();
    let (page, other) = (HttpToolServer::start("page"), HttpToolServer::start("page"));
    let host = format!("127.0.0.1:{}", page.port());
    let mut server = Server::python(
        "mcp_server_fetch",
        &["--ignore-robots-txt", "--allow-private-ips"],
        &format!(", network: ['{host}']"),
    )
    .with_options(&["--allow-host", &host]);
    server.role = format!(", network: ['{host}']");
    let fetched = server.tried(&stage, "peer__fetch", &json!({ "url": page.url(), "raw": true }), &[]);
    assert!(fetched.code == Some(0) && fetched.out.contains("Welcome"), "{}", said(&fetched));
    let refused = server.tried(&stage, "peer__fetch", &json!({ "url": other.url(), "raw": true }), &[]);
    assert!(refused.code == Some(1) && !refused.out.contains("Welcome"), "{}", said(&refused));
    assert!(other.seen().is_empty());
}
