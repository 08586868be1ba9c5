//! How programs find the gateway: the environment and the arguments that point each at it. The user's own keys stay here;
//! the program gets the key of its run and no other.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Result, bail};

use crate::exec::claude::{ClaudeArguments, SWITCHES};
use crate::exec::program::{ProgramStart, base_name};

/// What the user's environment says about providers.
#[derive(Default)]
pub(crate) struct UserEnvironment {
    pub(crate) anthropic_base_url: Option<String>,
    pub(crate) anthropic_key: Option<AnthropicKey>,
    pub(crate) open_ai_base_url: Option<String>,
    pub(crate) open_ai_key: Option<String>,
    no_proxy: Option<String>,
}

/// Anthropic takes keys in one header and tokens in another.
#[derive(Clone)]
pub(crate) enum AnthropicKey {
    ApiKey(String),
    AuthToken(String),
}

/// Variables that would show the program a key of the user, or lead it past the gateway.
const REMOVED: [&str; 10] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_VERTEX_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CODEX_API_KEY",
    "OPENAI_API_BASE",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
];

impl UserEnvironment {
    /// The keys in it.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let anthropic = self.anthropic_key.as_ref().map(|key| match key {
            AnthropicKey::ApiKey(text) | AnthropicKey::AuthToken(text) => text.as_str(),
        });
        anthropic.into_iter().chain(self.open_ai_key.as_deref())
    }

    pub(crate) fn read() -> Self {
        let api_key = variable("ANTHROPIC_API_KEY").map(AnthropicKey::ApiKey);
        Self {
            anthropic_base_url: variable("ANTHROPIC_BASE_URL"),
            anthropic_key: api_key.or_else(|| variable("ANTHROPIC_AUTH_TOKEN").map(AnthropicKey::AuthToken)),
            open_ai_base_url: variable("OPENAI_BASE_URL"),
            open_ai_key: variable("OPENAI_API_KEY").or_else(|| variable("CODEX_API_KEY")),
            no_proxy: variable("NO_PROXY").or_else(|| variable("no_proxy")),
        }
    }
}

/// A program and its arguments, read before anything starts: some would lead past the gateway.
pub(crate) struct AskedProgram {
    program: OsString,
    args: AskedArguments,
}

enum AskedArguments {
    ClaudeCode(ClaudeArguments),
    Codex(Vec<OsString>),
    Other(Vec<OsString>),
}

impl AskedProgram {
    pub(crate) fn read(program: &OsStr, args: &[OsString]) -> Result<Self> {
        let args = match base_name(program).as_str() {
            "claude" => AskedArguments::ClaudeCode(ClaudeArguments::read(args)?),
            "codex" => {
                refuse_other_providers(args)?;
                AskedArguments::Codex(args.to_vec())
            }
            _ => AskedArguments::Other(args.to_vec()),
        };
        Ok(Self { program: program.to_owned(), args })
    }

    /// How to start it so that it calls the gateway, as each kind of program wants to be told. The folder is for a private
    /// file of it.
    pub(crate) fn start(
        self,
        at: SocketAddr,
        key: &str,
        user: &UserEnvironment,
        folder: &Path,
    ) -> io::Result<ProgramStart> {
        let (anthropic, open_ai) = (format!("http://{at}"), format!("http://{at}/v1"));
        // Claude Code asks before it uses an API key from the environment, and takes a token without a word.
        let anthropic_key = match self.args {
            AskedArguments::ClaudeCode(_) => "ANTHROPIC_AUTH_TOKEN",
            AskedArguments::Codex(_) | AskedArguments::Other(_) => "ANTHROPIC_API_KEY",
        };
        let here = "127.0.0.1,localhost";
        let no_proxy =
            user.no_proxy.as_ref().map_or_else(|| here.to_owned(), |others| format!("{others},{here}"));
        let set = [
            ("ANTHROPIC_BASE_URL", anthropic.as_str()),
            (anthropic_key, key),
            ("OPENAI_BASE_URL", open_ai.as_str()),
            // Its older name.
            ("OPENAI_API_BASE", open_ai.as_str()),
            ("OPENAI_API_KEY", key),
            ("CODEX_API_KEY", key),
            ("NO_PROXY", no_proxy.as_str()),
            ("no_proxy", no_proxy.as_str()),
        ];
        let set = set.map(|(name, value)| (name, OsString::from(value))).to_vec();
        let (args, settings) = match self.args {
            AskedArguments::ClaudeCode(args) => {
                let (args, settings) = args.leading_to(&anthropic, key, folder)?;
                (args, Some(settings))
            }
            AskedArguments::Codex(args) => {
                (codex_arguments(&open_ai).into_iter().chain(args).collect(), None)
            }
            AskedArguments::Other(args) => (args, None),
        };
        let removed = REMOVED.into_iter().chain(SWITCHES).collect();
        Ok(ProgramStart { program: self.program, args, set, removed, settings })
    }
}

/// Codex takes its address from its configuration only. As a provider of our own: at a terminal it would send the key of a
/// stored login to OpenAI's provider, and ask for a login if there is none.
fn codex_arguments(url: &str) -> Vec<OsString> {
    let provider = format!(
        "model_providers.spinney={{name=\"OpenAI\", base_url=\"{url}\", env_key=\"OPENAI_API_KEY\", wire_api=\"responses\"}}"
    );
    vec!["-c".into(), "model_provider=\"spinney\"".into(), "-c".into(), provider.into()]
}

/// Our arguments win over every file of Codex's configuration, but later arguments win over ours.
fn refuse_other_providers(args: &[OsString]) -> Result<()> {
    let mut words = args.iter().map(|arg| arg.to_string_lossy());
    while let Some(word) = words.next() {
        if word == "--" {
            return Ok(());
        }
        let option = word.split('=').next().unwrap_or_default();
        if option == "--oss" || option == "--local-provider" {
            bail!("`{option}` leads codex past the gateway: leave it out, or run codex by itself");
        }
        let value = match word.as_ref() {
            "-c" | "--config" => words.next().map(|value| value.into_owned()),
            word => {
                let value = word.strip_prefix("--config=").or_else(|| word.strip_prefix("-c"));
                value.map(|value| value.trim_start_matches('=').to_owned())
            }
        };
        let key = value.as_deref().and_then(|value| value.split('=').next()).unwrap_or_default();
        let parts: Vec<&str> = key.split('.').map(|part| part.trim().trim_matches(['"', '\''])).collect();
        if matches!(parts[..], ["model_provider"] | ["model_providers"] | ["model_providers", "spinney", ..])
        {
            bail!(
                "`-c {}` leads codex past the gateway: leave it out; a base URL in OPENAI_BASE_URL is where the gateway sends its calls",
                key.trim()
            );
        }
    }
    Ok(())
}

/// An empty variable is none.
#[expect(clippy::disallowed_methods, reason = "the user's keys and addresses come from here only")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
