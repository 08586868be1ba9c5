//! How programs find the gateway: the environment and the arguments that point each at it. The user's own keys stay here;
//! the program gets the key of its run and no other.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;

use serde_json::json;

use crate::program::{ProgramStart, base_name};

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
const REMOVED: [&str; 13] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_VERTEX_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
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

/// A program that calls the gateway, as each kind of program wants to be told.
pub(crate) fn program_start(
    program: &OsStr,
    args: &[OsString],
    at: SocketAddr,
    key: &str,
    user: &UserEnvironment,
) -> ProgramStart {
    let name = base_name(program);
    let (anthropic, open_ai) = (format!("http://{at}"), format!("http://{at}/v1"));
    // Claude Code asks before it uses an API key from the environment, and takes a token without a word.
    let anthropic_key = if name == "claude" { "ANTHROPIC_AUTH_TOKEN" } else { "ANTHROPIC_API_KEY" };
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
    let pointing = match name.as_str() {
        "claude" => claude_arguments(args, &anthropic),
        "codex" => codex_arguments(&open_ai),
        _ => Vec::new(),
    };
    let args = pointing.into_iter().chain(args.iter().cloned()).collect();
    ProgramStart { program: program.to_owned(), args, set, removed: REMOVED.to_vec() }
}

/// An address in the user's settings would win over the environment. Only one `--settings` counts, so that of the user stays.
fn claude_arguments(args: &[OsString], url: &str) -> Vec<OsString> {
    let is_given = |arg: &OsString| {
        arg.to_str().is_some_and(|arg| arg == "--settings" || arg.starts_with("--settings="))
    };
    if args.iter().any(is_given) {
        return Vec::new();
    }
    let settings = json!({ "env": { "ANTHROPIC_BASE_URL": url } });
    vec!["--settings".into(), settings.to_string().into()]
}

/// Codex takes its address from its configuration only. As a provider of our own: at a terminal it would send the key of a
/// stored login to OpenAI's provider, and ask for a login if there is none.
fn codex_arguments(url: &str) -> Vec<OsString> {
    let provider = format!(
        "model_providers.spinney={{name=\"OpenAI\", base_url=\"{url}\", env_key=\"OPENAI_API_KEY\", wire_api=\"responses\"}}"
    );
    vec!["-c".into(), "model_provider=\"spinney\"".into(), "-c".into(), provider.into()]
}

/// An empty variable is none.
#[expect(clippy::disallowed_methods, reason = "the user's keys and addresses come from here only")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
