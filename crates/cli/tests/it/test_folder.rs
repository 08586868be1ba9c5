//! A home for each test, trees to run in it, and the binary as a child process.

use std::io::{BufRead, BufReader, Lines, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::pty::Pty;
use crate::upstream::Upstream;

/// A folder with a home and tree files.
pub(crate) struct TestFolder {
    folder: TempDir,
    home: PathBuf,
}

/// Where programs of `exec` that make no call would send them: nothing listens there.
pub(crate) const NO_SERVER: [(&str, &str); 2] =
    [("ANTHROPIC_BASE_URL", "http://127.0.0.1:9"), ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")];

/// What a command printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A running command.
pub(crate) struct Playing {
    child: Child,
    /// `None` once it has no reader any more.
    out: Option<Lines<BufReader<ChildStdout>>>,
    err: BufReader<ChildStderr>,
    said: String,
}

/// A price, so there is something to spend.
const PRICE: &str = "price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 }";

impl TestFolder {
    /// Of a user who allows servers on this machine, because that is where the models of tests are.
    pub(crate) fn new() -> Self {
        let stage = Self::stranger();
        let folder = stage.folder.path().join("user/config/spinney");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), "allow_hosts = [\"127.0.0.1\"]\n").unwrap();
        stage
    }

    /// Of a user who has allowed nothing.
    pub(crate) fn stranger() -> Self {
        let folder = TempDir::new().unwrap();
        let home = folder.path().join(".spinney");
        Self { folder, home }
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Another home in the same folder.
    pub(crate) fn at(mut self, home: &str) -> Self {
        self.home = self.folder.path().join(home);
        self
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// A tree of one agent, `lead`, that may cost a dollar.
    pub(crate) fn tree(&self, tools: &str, script: &str) -> String {
        self.tree_with("budget: { cost_usd: 1 }", tools, script)
    }

    /// The same with another budget.
    pub(crate) fn tree_with(&self, budget: &str, tools: &str, script: &str) -> String {
        self.file("tree.script.yaml", script);
        self.tree_of("provider: scripted, script: tree.script.yaml", budget, tools)
    }

    /// The same with a model that the test plays, so it decides when a call ends. The only tool is `write_file`.
    pub(crate) fn tree_on(&self, upstream: &Upstream) -> String {
        let model = format!("provider: openai_compatible, model: tiny, base_url: '{}'", upstream.url);
        self.tree_of(&model, "budget: { cost_usd: 1 }", "write_file")
    }

    fn tree_of(&self, model: &str, budget: &str, tools: &str) -> String {
        let model = format!("{{ {model}, {PRICE} }}");
        let agent = format!("{{ model: fast, tools: [{tools}] }}");
        let text = format!(
            "name: test\ngoal: Try it.\n{budget}\nmodels:\n  fast: {model}\nagents:\n  lead: {agent}\n"
        );
        self.file("tree.yaml", &text)
    }

    /// Where the user of a test has their configuration and what is remembered for them.
    pub(crate) fn user_folders(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("XDG_CACHE_HOME", "user/cache"),
            ("XDG_CONFIG_HOME", "user/config"),
            ("XDG_STATE_HOME", "user/state"),
        ]
        .map(|(variable, folder)| (variable, self.folder.path().join(folder)))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spinney"));
        // No test calls a real model, even if the environment has keys or logins.
        for name in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CONFIG_DIR",
            "CODEX_API_KEY",
            "CODEX_HOME",
            "GEMINI_API_KEY",
            "GEMINI_CLI_HOME",
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
            "GOOGLE_API_KEY",
            "GOOGLE_GEMINI_BASE_URL",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
        ] {
            command.env_remove(name);
        }
        command
            .args(args)
            .env_remove("SPINNEY_HOME")
            .env_remove("SPINNEY_LOG")
            .env_remove("TRACEPARENT")
            .envs(self.user_folders())
            .current_dir(self.folder.path());
        if self.home != self.folder.path().join(".spinney") {
            command.env("SPINNEY_HOME", &self.home);
        }
        command.stdin(Stdio::null());
        command
    }

    /// Starts a command on a terminal of this size.
    pub(crate) fn terminal(&self, args: &[&str], columns: u16, lines: u16) -> Pty {
        Pty::start(&self.command(args), columns, lines)
    }

    /// The same with a terminal that does not control it.
    pub(crate) fn terminal_apart(&self, args: &[&str], columns: u16, lines: u16) -> Pty {
        Pty::start_apart(&self.command(args), columns, lines)
    }

    /// The same with more environment variables.
    pub(crate) fn terminal_in(
        &self,
        args: &[&str],
        (columns, lines): (u16, u16),
        environment: &[(&str, &str)],
    ) -> Pty {
        Pty::start_in(&self.command(args), columns, lines, environment)
    }

    /// The same for another program.
    pub(crate) fn terminal_of(
        &self,
        program: &str,
        args: &[&str],
        (columns, lines): (u16, u16),
        environment: &[(&str, &str)],
    ) -> Pty {
        let mut command = Command::new(program);
        command.args(args).env_remove("SPINNEY_HOME").env_remove("SPINNEY_LOG");
        command.envs(self.user_folders()).current_dir(self.folder.path());
        Pty::start_in(&command, columns, lines, environment)
    }

    /// Everything that a command writes to a terminal.
    pub(crate) fn terminal_bytes(&self, args: &[&str], environment: &[(&str, &str)]) -> String {
        Pty::start_in(&self.command(args), 80, 24, environment).bytes()
    }

    /// Runs a command to its end.
    pub(crate) fn spinney(&self, args: &[&str]) -> Ended {
        Ended::from(self.command(args).output().unwrap())
    }

    /// The [`steady`] output of a command that must succeed.
    pub(crate) fn said(&self, args: &[&str]) -> String {
        let ended = self.spinney(args);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{}", ended.out);
        steady(&ended.out)
    }

    /// The results that an agent of the last tree read, in order.
    pub(crate) fn results(&self, agent: &str) -> Vec<Value> {
        let shown = self.spinney(&["show", "last", agent, "--json"]).json();
        shown.into_iter().filter(|message| message["role"] == "tool").collect()
    }

    /// Runs a printed command line in a shell that has no `SPINNEY_HOME`.
    pub(crate) fn shell(&self, line: &str) -> Ended {
        let binary = Path::new(env!("CARGO_BIN_EXE_spinney")).parent().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"PATH="$1:$PATH"; eval "$2""#, "sh"]).arg(binary).arg(line);
        shell.env_remove("SPINNEY_HOME").envs(self.user_folders());
        Ended::from(shell.current_dir(self.folder.path()).stdin(Stdio::null()).output().unwrap())
    }

    pub(crate) fn play(&self, args: &[&str]) -> Playing {
        self.play_in(args, &[])
    }

    /// Starts a command with more environment variables.
    pub(crate) fn play_in(&self, args: &[&str], environment: &[(&str, &str)]) -> Playing {
        let mut command = self.command(args);
        command.envs(environment.iter().copied());
        Self::started(command)
    }

    /// Starts a command with a umask that hides nothing.
    pub(crate) fn play_unmasked(&self, args: &[&str]) -> Playing {
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"umask 000; exec "$@""#, "sh", env!("CARGO_BIN_EXE_spinney")]).args(args);
        shell
            .env("SPINNEY_HOME", &self.home)
            .envs(self.user_folders())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        Self::started(shell)
    }

    pub(crate) fn started(mut command: Command) -> Playing {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        let err = BufReader::new(child.stderr.take().unwrap());
        Playing { child, out: Some(out), err, said: String::new() }
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ended {
    /// The lines of its output, as JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    /// The last line of its output, as JSON.
    pub(crate) fn result(&self) -> Value {
        self.json().pop().unwrap()
    }
}

impl Playing {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line of output that contains this.
    pub(crate) fn until(&mut self, part: &str) -> String {
        loop {
            let line = self.line().unwrap_or_else(|| panic!("it ended without `{part}`:\n{}", self.said));
            self.said += &format!("{line}\n");
            if line.contains(part) {
                return line;
            }
        }
    }

    /// The output so far, as far as it was waited for.
    pub(crate) fn said(&self) -> String {
        self.said.clone()
    }

    /// The next line of output; `None` once the command has ended.
    pub(crate) fn line(&mut self) -> Option<String> {
        self.out.as_mut()?.next().map(Result::unwrap)
    }

    /// Waits for a line on standard error that contains this.
    pub(crate) fn until_noted(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.err.read_line(&mut line).unwrap(), 0, "it ended without noting `{part}`");
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.pid().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Kills the process.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the other end of its output.
    pub(crate) fn turn_away(&mut self) {
        self.out = None;
    }

    pub(crate) fn end(mut self) -> Ended {
        while let Some(line) = self.line() {
            self.said += &format!("{line}\n");
        }
        let mut err = String::new();
        self.err.read_to_string(&mut err).unwrap();
        Ended { code: self.child.wait().unwrap().code(), out: self.said, err }
    }
}

/// Replaces what differs between runs: ids, hashes and times.
pub(crate) fn steady(text: &str) -> String {
    let mut steady = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let before = steady.chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric() || c == '.');
        let word =
            rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '.').len();
        if before || word == 0 {
            steady.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(word);
        if let (8, Some(after)) = (word.len(), after.strip_prefix('-').and_then(without_digits)) {
            steady += "[name]";
            rest = after;
            continue;
        }
        steady += named(word).unwrap_or(word);
        rest = after;
    }
    steady
}

/// The text after the hex digits of a generated name.
fn without_digits(text: &str) -> Option<&str> {
    let after = text.trim_start_matches(|c: char| matches!(c, '0'..='9' | 'a'..='f'));
    (text.len() - after.len() == 10).then_some(after)
}

fn named(word: &str) -> Option<&'static str> {
    let is_hex = word.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_time =
        word.strip_suffix('s').and_then(|time| time.split_once('.')).is_some_and(|(whole, part)| {
            part.len() == 2 && [whole, part].iter().all(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
        });
    match word.len() {
        64 if is_hex => Some("[hash]"),
        32 if is_hex => Some("[tree]"),
        12 if is_hex => Some("[id]"),
        8 if is_hex => Some("[digits]"),
        _ if is_time => Some("0.00s"),
        _ => None,
    }
}
