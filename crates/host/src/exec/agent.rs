//! Programs that are agents of a tree: how each is started with a task, and what its output says.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use spinney_drivers::sandbox::Confinement;
use spinney_kernel::definition::{BoxWalls, KnownProgram, ProgramCommand};
use spinney_kernel::port::program::{InstalledPath, SessionStore};
use spinney_kernel::primitives::{CommandExit, SessionId};

use super::boxed::installation;
use super::claude::{SWITCHES, project_name};
use super::codex::{CodexArguments, WebSearch};
use super::environment::{UserEnvironment, gateway_variables};
use super::keys::{self, CalledProviders};
use super::placeholders::GatewayPlace;
use super::{BadArguments, OwnSandbox};
use crate::user::folders::user_home;
use crate::user::variables::of_environment;

/// Codex prints its events; the option has the name of one of ours.
const CODEX_EVENTS: &str = concat!("--", "json");
/// What a program is told that was interrupted. Its session has the task.
const CONTINUE: &str =
    "You were interrupted. Continue with your task where you stopped, and check first what is done already.";
/// What it is told of a task that is not its session's first: it may not have read it.
const LAST_TASK: &str = "Your last task was:";
/// A longer line of output is not read.
const LINE_BYTES_MAX: usize = 8 << 20;

/// How a program is started.
pub struct AgentStart {
    /// It and its arguments.
    pub arguments: Vec<OsString>,
    /// Variables that it gets beside those of its box.
    pub environment: Vec<(OsString, OsString)>,
    /// Its file, where links lead to it.
    pub file: Option<PathBuf>,
    /// What of its installation its box would not have.
    pub installation: Vec<InstalledPath>,
    /// How its output is read.
    pub output: AgentOutput,
}

/// What a program is started for.
#[derive(Clone, Copy, Debug)]
pub enum AgentWork<'a> {
    /// Its task.
    Task(&'a str),
    /// The rest of what it was told in a session, which a crash interrupted.
    Rest(&'a SessionId),
    /// Another task, in the session of an earlier one.
    Next(&'a SessionId, &'a str),
}

impl<'a> AgentWork<'a> {
    /// The session that it continues in, and what it is told there.
    const fn parts(self) -> (Option<&'a SessionId>, &'a str) {
        match self {
            Self::Task(task) => (None, task),
            Self::Rest(session) => (Some(session), CONTINUE),
            Self::Next(session, task) => (Some(session), task),
        }
    }
}

/// Where a program finds the gateway, and what surrounds it.
pub struct AgentPlace<'a> {
    /// Where the gateway listens.
    pub gateway: SocketAddr,
    /// The key of the run.
    pub key: &'a str,
    /// Its box.
    pub walls: BoxWalls,
}

/// Why a program is not started.
#[derive(Debug, thiserror::Error)]
pub enum AgentStartError {
    /// It does not take its task.
    #[error(transparent)]
    Task(#[from] spinney_kernel::definition::CommandFillError),
    /// It named a session, and is started in none.
    #[error("this program cannot be continued in a session")]
    NoSessions,
    /// It does not take its arguments.
    #[error(transparent)]
    Arguments(#[from] BadArguments),
    /// No provider would answer it.
    #[error(transparent)]
    Key(#[from] keys::NoKey),
}

impl AgentStart {
    /// # Errors
    /// What is missing, before anything is started.
    pub fn new(
        command: &ProgramCommand,
        work: AgentWork<'_>,
        place: &AgentPlace<'_>,
        user: &UserEnvironment,
    ) -> Result<Self, AgentStartError> {
        let AgentPlace { gateway, key, walls } = place;
        let (anthropic, open_ai) = (format!("http://{gateway}"), format!("http://{gateway}/v1"));
        let own = if *walls == BoxWalls::None { OwnSandbox::AsSet } else { OwnSandbox::Off };
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let (session, told) = work.parts();
        let (arguments, output, extra) = match command {
            ProgramCommand::Known(KnownProgram::Claude) => {
                let settings = claude_settings(&anthropic, own);
                let mode = if own == OwnSandbox::Off { "bypassPermissions" } else { "acceptEdits" };
                let mut all = words(&["claude", "-p", "--output-format", "stream-json", "--verbose"]);
                all.extend(words(&["--settings", &settings, "--permission-mode", mode]));
                session.into_iter().for_each(|session| all.extend(words(&["--resume", session.as_str()])));
                all.extend(words(&["--", told]));
                // It refuses to work without questions as root, unless it knows that something is around it.
                let sandbox = (own == OwnSandbox::Off).then(|| ("IS_SANDBOX".to_owned(), "1".to_owned()));
                (all, AgentOutput::Claude, sandbox)
            }
            ProgramCommand::Known(KnownProgram::Codex) => {
                let mut given = words(&["exec", CODEX_EVENTS, "--skip-git-repo-check"]);
                session.into_iter().for_each(|session| given.extend(words(&["resume", session.as_str()])));
                given.extend(words(&["--", told]));
                let led = CodexArguments::read(&given)?.leading_to(&open_ai, WebSearch::Refused, own);
                let all = [OsString::from("codex")].into_iter().chain(led).collect();
                (all, AgentOutput::Codex, None)
            }
            ProgramCommand::Known(KnownProgram::Opencode) => {
                let config = opencode_config(&anthropic, &open_ai, key, user);
                let variable = ("OPENCODE_CONFIG_CONTENT".to_owned(), config);
                if session.is_some() {
                    return Err(AgentStartError::NoSessions);
                }
                let all = words(&["opencode", "run", "--", told]);
                (all, AgentOutput::Plain, Some(variable))
            }
            ProgramCommand::Words(template) => {
                if session.is_some() {
                    return Err(AgentStartError::NoSessions);
                }
                let place =
                    GatewayPlace { anthropic: &anthropic, open_ai: &open_ai, gemini: &anthropic, key };
                // Before the task is in it: a task may well speak of a key.
                let led = template.clone().with_fixed_words(|word| {
                    place.fill(vec![word.into()]).pop()?.into_string().ok().filter(|filled| filled != word)
                });
                let all = ProgramCommand::fill(&led, told)?;
                (all.into_iter().map(OsString::from).collect(), AgentOutput::Plain, None)
            }
        };
        check_key(command, user)?;
        let is_claude = matches!(command, ProgramCommand::Known(KnownProgram::Claude));
        let variables = gateway_variables(*gateway, key, user, is_claude);
        let empty = SWITCHES.iter().filter(|_| is_claude).map(|name| ((*name).to_owned(), OsString::new()));
        let extra = extra.map(|(name, value)| (name, OsString::from(value)));
        let path = of_environment("PATH").map(|path| ("PATH".to_owned(), OsString::from(path)));
        let environment = variables.into_iter().chain(empty).chain(extra).chain(path);
        let environment = environment.map(|(name, value)| (OsString::from(name), value)).collect();
        let (file, installation) = installed(arguments.first().map(OsString::as_os_str));
        Ok(Self { arguments, environment, file, installation, output })
    }
}

/// What a program is told that was interrupted in the session of an earlier agent.
#[must_use]
pub fn interrupted_followup(task: &str) -> String {
    format!("{CONTINUE} {LAST_TASK}\n\n{task}")
}

/// Where a program keeps the sessions that it can be continued by in another folder, if that is known.
#[must_use]
pub const fn session_store(command: &ProgramCommand) -> Option<SessionStore> {
    match command {
        ProgramCommand::Known(KnownProgram::Claude) => {
            Some(SessionStore { folder: ".claude/projects", levels: 1, first: Some(project_name) })
        }
        ProgramCommand::Known(KnownProgram::Codex) => {
            // Year, month and day.
            Some(SessionStore { folder: ".codex/sessions", levels: 3, first: None })
        }
        ProgramCommand::Known(KnownProgram::Opencode) | ProgramCommand::Words(_) => None,
    }
}

/// Refuses a program that would get no answer.
///
/// # Errors
/// Which key is missing.
pub fn check_key(command: &ProgramCommand, user: &UserEnvironment) -> Result<(), keys::NoKey> {
    let (name, called) = match command {
        ProgramCommand::Known(known) => {
            let called = match known {
                KnownProgram::Claude => CalledProviders::Anthropic,
                KnownProgram::Codex => CalledProviders::OpenAi,
                KnownProgram::Opencode => CalledProviders::Any,
            };
            (known.as_str().to_owned(), called)
        }
        ProgramCommand::Words(template) => {
            let words = Vec::<String>::from(template.clone());
            let name = words.first().and_then(|program| Path::new(program).file_name());
            (name.unwrap_or_default().to_string_lossy().into_owned(), CalledProviders::Any)
        }
    };
    keys::check(&name, called, user)
}

/// What of a program's installation a box would not have.
fn installed(program: Option<&OsStr>) -> (Option<PathBuf>, Vec<InstalledPath>) {
    let (Some(program), Some(home)) = (program, user_home()) else { return (None, Vec::new()) };
    let mut confinement = Confinement::new(PathBuf::from("/"));
    // Nothing of a folder is asked for: it has its own.
    let file = installation::add(program, Path::new("/nonexistent"), &home, &mut confinement);
    let placed = confinement.placed.into_iter();
    (file, placed.map(|path| InstalledPath { from: path.from, at: path.at }).collect())
}

/// The settings of a project cannot lead it elsewhere. The key is in its environment.
fn claude_settings(url: &str, sandbox: OwnSandbox) -> String {
    let mut settings = json!({ "env": { "ANTHROPIC_BASE_URL": url } });
    for name in SWITCHES {
        settings["env"][name] = json!("");
    }
    if sandbox == OwnSandbox::Off {
        settings["sandbox"] = json!({ "enabled": false });
    }
    settings.to_string()
}

/// The providers that would answer are the only ones: it calls the first that it knows a key of, and the gateway's key is set
/// for all.
fn opencode_config(anthropic: &str, open_ai: &str, key: &str, user: &UserEnvironment) -> String {
    let provider = |url: &str| json!({ "options": { "baseURL": url, "apiKey": key } });
    let providers = json!({
        "anthropic": provider(&format!("{anthropic}/v1")),
        "google": provider(&format!("{anthropic}/v1beta")),
        "openai": provider(open_ai),
    });
    let answered = [
        ("anthropic", CalledProviders::Anthropic),
        ("google", CalledProviders::Gemini),
        ("openai", CalledProviders::OpenAi),
    ];
    let answered = answered.into_iter().filter(|(_, called)| keys::check("opencode", *called, user).is_ok());
    let enabled: Vec<&str> = answered.map(|(name, _)| name).collect();
    json!({ "provider": providers, "enabled_providers": enabled, "autoupdate": false, "share": "disabled" })
        .to_string()
}

/// How the output of a program is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentOutput {
    /// What it prints is its answer.
    Plain,
    /// `claude --output-format stream-json`.
    Claude,
    /// `codex exec --json`.
    Codex,
}

/// What a program said at last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentReply {
    /// Its last message.
    pub text: String,
    /// The session that it can be continued by, if it named one.
    pub session: Option<SessionId>,
    /// Whether it says that it failed.
    pub is_error: bool,
}

/// Reads the output of a program as it comes.
#[derive(Debug)]
pub struct AgentReader {
    output: AgentOutput,
    line: VecDeque<u8>,
    is_too_long: bool,
    reply: AgentReply,
    has_result: bool,
}

impl AgentReader {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(output: AgentOutput) -> Self {
        let (line, reply) = (VecDeque::new(), AgentReply::default());
        Self { output, line, is_too_long: false, reply, has_result: false }
    }

    /// Reads a piece, and returns what watchers are shown of it.
    pub fn read(&mut self, bytes: &[u8]) -> String {
        if self.output == AgentOutput::Plain {
            return String::from_utf8_lossy(bytes).into_owned();
        }
        let mut shown = String::new();
        for byte in bytes {
            match byte {
                b'\n' => {
                    let line: Vec<u8> = self.line.drain(..).collect();
                    if !std::mem::take(&mut self.is_too_long)
                        && let Ok(event) = serde_json::from_slice::<Value>(&line)
                    {
                        self.event(&event, &mut shown);
                    }
                }
                _ if self.line.len() >= LINE_BYTES_MAX => self.is_too_long = true,
                byte => self.line.push_back(*byte),
            }
        }
        shown
    }

    fn event(&mut self, event: &Value, shown: &mut String) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match self.output {
            AgentOutput::Plain => {}
            AgentOutput::Claude => {
                self.named(&event["session_id"]);
                match event["type"].as_str() {
                    Some("assistant") => {
                        for block in event["message"]["content"].as_array().into_iter().flatten() {
                            if let Some(said) = text(&block["text"]) {
                                self.said(said, shown);
                            }
                        }
                    }
                    Some("result") => {
                        self.has_result = true;
                        self.reply.is_error = event["is_error"].as_bool().unwrap_or(false);
                        if let Some(result) = text(&event["result"]) {
                            self.reply.text = result;
                        }
                    }
                    _ => {}
                }
            }
            AgentOutput::Codex => match event["type"].as_str() {
                Some("thread.started") => self.named(&event["thread_id"]),
                Some("item.completed") if event["item"]["type"] == "agent_message" => {
                    if let Some(said) = text(&event["item"]["text"]) {
                        self.said(said, shown);
                    }
                }
                Some("turn.completed") => self.has_result = true,
                Some("turn.failed") => {
                    (self.has_result, self.reply.is_error) = (true, true);
                    if let Some(message) = text(&event["error"]["message"]) {
                        self.reply.text = message;
                    }
                }
                _ => {}
            },
        }
    }

    /// The session that it can be continued by, if it named one so far.
    #[must_use]
    pub const fn session(&self) -> Option<&SessionId> {
        self.reply.session.as_ref()
    }

    /// A name that cannot be a session's is none.
    fn named(&mut self, session: &Value) {
        if let Some(session) = session.as_str().and_then(|session| session.parse().ok()) {
            self.reply.session = Some(session);
        }
    }

    fn said(&mut self, said: String, shown: &mut String) {
        shown.push_str(&said);
        shown.push('\n');
        self.reply.text = said;
    }

    /// What it said at last. A program that ended without a success has failed, and what it wrote says why.
    #[must_use]
    pub fn end(mut self, stdout: &str, stderr: &str, exit: Option<CommandExit>) -> AgentReply {
        // Its last line may have no end.
        self.read(b"\n");
        let is_plain = self.output == AgentOutput::Plain;
        if is_plain {
            stdout.trim_end().clone_into(&mut self.reply.text);
        }
        let is_success = exit.is_some_and(|exit| exit.is_success());
        self.reply.is_error |= !is_success || (!is_plain && !self.has_result);
        if !is_success {
            let how =
                exit.map_or_else(|| "it ended without an exit code".to_owned(), |exit| exit.to_string());
            let parts = [how.as_str(), self.reply.text.as_str(), stderr];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            self.reply.text = parts.join("\n");
        }
        self.reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::environment::AnthropicKey;

    const SUCCESS: Option<CommandExit> = Some(CommandExit::Code(0));

    #[test]
    fn what_claude_code_says_is_read_in_any_pieces() {
        let output = concat!(
            r#"{"type":"system","subtype":"init","session_id":"s1"}"#,
            "\n",
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I begin."}]},"session_id":"s1"}"#,
            "\nnot json\n",
            r#"{"type":"result","is_error":false,"result":"It is done.","session_id":"s1","total_cost_usd":0.01}"#,
        );
        for size in [1, 7, output.len()] {
            let mut reader = AgentReader::new(AgentOutput::Claude);
            let shown: String = output.as_bytes().chunks(size).map(|piece| reader.read(piece)).collect();
            assert_eq!(shown, "I begin.\n");
            let reply = reader.end(output, "", SUCCESS);
            let session = Some("s1".parse().unwrap());
            assert_eq!(reply, AgentReply { text: "It is done.".to_owned(), session, is_error: false });
        }
    }

    #[test]
    fn what_codex_says_is_read() {
        let mut reader = AgentReader::new(AgentOutput::Codex);
        let lines = [
            r#"{"type":"thread.started","thread_id":"t1"}"#,
            r#"{"type":"item.completed","item":{"type":"reasoning","text":"Hm."}}"#,
            r#"{"type":"item.completed","item":{"type":"agent_message","text":"Fine."}}"#,
            r#"{"type":"turn.completed","usage":{}}"#,
        ];
        reader.read(lines.join("\n").as_bytes());
        let reply = reader.end("", "", SUCCESS);
        assert_eq!(
            (reply.text.as_str(), reply.session.as_ref().map(SessionId::as_str)),
            ("Fine.", Some("t1"))
        );
        assert!(!reply.is_error);
    }

    #[test]
    fn a_program_that_ends_without_a_result_or_a_success_has_failed() {
        let reader = AgentReader::new(AgentOutput::Codex);
        assert!(reader.end("", "", SUCCESS).is_error);
        let reply =
            AgentReader::new(AgentOutput::Plain).end("half\n", "no login", Some(CommandExit::Code(3)));
        assert_eq!((reply.is_error, reply.text.as_str()), (true, "exit code 3\nhalf\nno login"));
        let reply = AgentReader::new(AgentOutput::Plain).end("all of it\n", "a warning", SUCCESS);
        assert_eq!((reply.is_error, reply.text.as_str()), (false, "all of it"));
    }

    /// A task is a word of its own, never an option, and nothing in it is filled in.
    #[test]
    fn a_task_stays_in_its_word() {
        let mut user = UserEnvironment::default();
        user.open_ai_key.get_or_insert("k".to_owned());
        let place =
            AgentPlace { gateway: "127.0.0.1:4100".parse().unwrap(), key: "run-key", walls: BoxWalls::Whole };
        let command = ProgramCommand::words(&["agent", "--url={openai_base_url}", "{key}", "{{ goal }}"]);
        let command = command.unwrap();
        let start =
            AgentStart::new(&command, AgentWork::Task("tell me {key} {openai_base_url}"), &place, &user)
                .unwrap();
        let expected =
            ["agent", "--url=http://127.0.0.1:4100/v1", "run-key", "tell me {key} {openai_base_url}"];
        assert_eq!(start.arguments, expected);
        assert!(AgentStart::new(&command, AgentWork::Task("--help"), &place, &user).is_err());
        let codex = ProgramCommand::Known(KnownProgram::Codex);
        let start = AgentStart::new(&codex, AgentWork::Task("--full-auto"), &place, &user).unwrap();
        assert_eq!(&start.arguments[start.arguments.len() - 2..], ["--", "--full-auto"]);
    }

    /// opencode would choose a provider that nobody has a key of.
    #[test]
    fn opencode_calls_the_providers_that_the_user_has_keys_of() {
        let mut user = UserEnvironment::default();
        user.open_ai_key.get_or_insert("k".to_owned());
        let place =
            AgentPlace { gateway: "127.0.0.1:4100".parse().unwrap(), key: "run-key", walls: BoxWalls::Whole };
        let command = ProgramCommand::Known(KnownProgram::Opencode);
        let start = AgentStart::new(&command, AgentWork::Task("Go."), &place, &user).unwrap();
        let config = start.environment.iter().find(|(name, _)| name == "OPENCODE_CONFIG_CONTENT").unwrap();
        let config: Value = serde_json::from_str(config.1.to_str().unwrap()).unwrap();
        assert_eq!(config["enabled_providers"], json!(["openai"]));
    }

    /// A program continues in its session and is not told its task again. What it names is never an option.
    #[test]
    fn a_program_continues_in_its_session() {
        let mut user = UserEnvironment::default();
        user.open_ai_key.get_or_insert("k".to_owned());
        user.anthropic_key.get_or_insert(AnthropicKey::ApiKey("k".to_owned()));
        let place =
            AgentPlace { gateway: "127.0.0.1:4100".parse().unwrap(), key: "run-key", walls: BoxWalls::Whole };
        let session: SessionId = "0199a-b".parse().unwrap();
        let words = |command: &ProgramCommand| {
            let start = AgentStart::new(command, AgentWork::Rest(&session), &place, &user).unwrap();
            start.arguments.into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>()
        };
        let claude = words(&ProgramCommand::Known(KnownProgram::Claude));
        assert_eq!(claude[claude.len() - 4..], ["--resume", "0199a-b", "--", CONTINUE]);
        let codex = words(&ProgramCommand::Known(KnownProgram::Codex));
        assert_eq!(codex[codex.len() - 4..], ["resume", "0199a-b", "--", CONTINUE]);
        let own = ProgramCommand::words(&["agent", "{{ goal }}"]).unwrap();
        assert!(AgentStart::new(&own, AgentWork::Rest(&session), &place, &user).is_err());
        for (command, resume) in [(KnownProgram::Claude, "--resume"), (KnownProgram::Codex, "resume")] {
            let command = ProgramCommand::Known(command);
            let start =
                AgentStart::new(&command, AgentWork::Next(&session, "--help"), &place, &user).unwrap();
            assert_eq!(start.arguments[start.arguments.len() - 4..], [resume, "0199a-b", "--", "--help"]);
            assert!(session_store(&command).is_some());
        }
        assert!(session_store(&own).is_none());
        let mut reader = AgentReader::new(AgentOutput::Claude);
        reader.read(b"{\"type\":\"system\",\"session_id\":\"--dangerously-skip-permissions\"}\n");
        assert_eq!(reader.session(), None);
    }
}
