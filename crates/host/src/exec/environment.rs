//! How programs find the gateway: the environment and the arguments that point each at it. The user's own keys stay here;
//! the program gets the key of its run and no other.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::claude::{ClaudeArguments, SWITCHES};
use super::codex::{CodexArguments, WebSearch};
use super::gemini;
use super::keys::CalledProviders;
use super::placeholders::GatewayPlace;
use super::program::{ProgramStart, base_name};
use super::{BadArguments, OwnSandbox};
use crate::inside::HomeInode;
use crate::user::folders;
use crate::user::variables::{Variables, of_environment};

/// What the user's variables say about providers.
#[derive(Default)]
pub struct UserEnvironment {
    /// Where calls to Anthropic go, if not to its own server.
    pub anthropic_base_url: Option<String>,
    /// The key for them.
    pub anthropic_key: Option<AnthropicKey>,
    /// Where calls to OpenAI go, if not to its own server.
    pub open_ai_base_url: Option<String>,
    /// The key for them.
    pub open_ai_key: Option<String>,
    /// Where calls to Gemini go, if not to Google's own server.
    pub gemini_base_url: Option<String>,
    /// The key for them.
    pub gemini_key: Option<String>,
    /// Where Claude Code has a login by subscription, if it has one. What is in there is not read.
    pub claude_login: Option<String>,
    /// Where Codex has a stored login.
    pub codex_login: Option<String>,
    /// Where Gemini CLI has a stored login, and what it would call without a key.
    pub gemini_login: Option<String>,
    /// Whose format Copilot speaks, if the user says it.
    copilot_type: Option<String>,
    no_proxy: Option<String>,
    /// Variables that the user calls secret, with their values: the program gets them, and no journal does.
    secrets: Vec<(String, String)>,
}

/// Why a variable cannot be a secret of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSecretVariable {
    /// It has no value.
    #[error("{} is not set or is not text: set it, or do not name it", .0.escape_debug())]
    NotSet(String),
    /// The gateway uses it, and the program gets another value or none.
    #[error("the program never gets {0}: the gateway calls the provider on its behalf")]
    OfGateway(String),
}

/// Anthropic takes keys in one header and tokens in another.
#[derive(Clone)]
pub enum AnthropicKey {
    /// In the header of keys.
    ApiKey(String),
    /// In the header of tokens.
    AuthToken(String),
}

/// Whose format Copilot speaks.
const COPILOT_TYPE: &str = "COPILOT_PROVIDER_TYPE";

/// A login of Claude Code in the environment.
const CLAUDE_TOKEN: &str = "CLAUDE_CODE_OAUTH_TOKEN";

/// Variables that keys of the user are in.
pub const KEY_VARIABLES: [&str; 7] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    CLAUDE_TOKEN,
    "CODEX_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENAI_API_KEY",
];

/// Variables that would show the program a key of the user, or lead it past the gateway. Copilot has several more; those that
/// name no address and no key stay.
const REMOVED: [&str; 28] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_VERTEX_BASE_URL",
    CLAUDE_TOKEN,
    "CODEX_API_KEY",
    "COPILOT_PROVIDERS_CONFIG",
    "COPILOT_PROVIDER_API_KEY",
    "COPILOT_PROVIDER_API_KEY_COMMAND",
    "COPILOT_PROVIDER_AZURE_API_VERSION",
    "COPILOT_PROVIDER_BASE_URL",
    "COPILOT_PROVIDER_BEARER_TOKEN",
    "COPILOT_PROVIDER_HEADERS",
    COPILOT_TYPE,
    "CODE_ASSIST_ENDPOINT",
    "GEMINI_API_KEY",
    "GEMINI_API_KEY_AUTH_MECHANISM",
    "GOOGLE_API_KEY",
    "GOOGLE_GEMINI_BASE_URL",
    "GOOGLE_GENAI_API_VERSION",
    "GOOGLE_GENAI_USE_ENTERPRISE",
    "GOOGLE_GENAI_USE_GCA",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "GOOGLE_VERTEX_BASE_URL",
    "OPENAI_API_BASE",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
];

impl UserEnvironment {
    /// The format that Copilot is to speak: the one that the user chose, or that of a key that there is.
    fn copilot_type(&self) -> &'static str {
        let has_open_ai = self.open_ai_key.is_some() || self.open_ai_base_url.is_some();
        match self.copilot_type.as_deref() {
            Some("anthropic") => "anthropic",
            Some("openai") => "openai",
            _ if has_open_ai => "openai",
            _ => "anthropic",
        }
    }

    /// The same with variables that the user calls secret.
    ///
    /// # Errors
    /// If one is not set, or never reaches the program.
    pub fn with_secrets(
        mut self,
        names: &[String],
        variables: &Variables,
    ) -> Result<Self, BadSecretVariable> {
        for name in names {
            if REMOVED.contains(&name.as_str()) || SWITCHES.contains(&name.as_str()) {
                return Err(BadSecretVariable::OfGateway(name.clone()));
            }
            let value = variables.get(name).filter(|value| !value.is_empty());
            let value = value.ok_or_else(|| BadSecretVariable::NotSet(name.clone()))?;
            self.secrets.push((name.clone(), value));
        }
        Ok(self)
    }

    /// The values of the variables that the user calls secret.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secrets.iter().map(|(_, value)| value.as_str())
    }

    /// Everything secret in it, with a variable that has it.
    pub(super) fn named_secrets(&self) -> impl Iterator<Item = (String, String)> {
        let anthropic = self.anthropic_key.as_ref().map(|key| match key {
            AnthropicKey::ApiKey(text) => ("ANTHROPIC_API_KEY", text),
            AnthropicKey::AuthToken(text) => ("ANTHROPIC_AUTH_TOKEN", text),
        });
        let open_ai = self.open_ai_key.as_ref().map(|key| ("OPENAI_API_KEY", key));
        let gemini = self.gemini_key.as_ref().map(|key| ("GEMINI_API_KEY", key));
        let keys = anthropic
            .into_iter()
            .chain(open_ai)
            .chain(gemini)
            .map(|(name, key)| (name.to_owned(), key.clone()));
        keys.chain(self.secrets.iter().cloned())
    }

    /// A text without that.
    pub fn hidden_in(&self, text: &str) -> String {
        self.named_secrets().fold(text.to_owned(), |text, (_, key)| text.replace(&key, "[key]"))
    }

    /// What the user's environment says, and the files of variables that their configuration names.
    pub fn read(variables: &Variables) -> Self {
        let of = |names: &[&'static str]| variables.first(names);
        let value = |names| of(names).map(|(_, value)| value);
        Self {
            anthropic_base_url: value(&["ANTHROPIC_BASE_URL"]),
            anthropic_key: of(&["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"]).map(|(name, key)| match name {
                "ANTHROPIC_AUTH_TOKEN" => AnthropicKey::AuthToken(key),
                _ => AnthropicKey::ApiKey(key),
            }),
            open_ai_base_url: value(&["OPENAI_BASE_URL"]),
            open_ai_key: value(&["OPENAI_API_KEY", "CODEX_API_KEY"]),
            gemini_base_url: value(&["GOOGLE_GEMINI_BASE_URL"]),
            gemini_key: value(&["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
            claude_login: of_environment(CLAUDE_TOKEN)
                .filter(|token| !token.is_empty())
                .map(|_| CLAUDE_TOKEN.to_owned())
                .or_else(|| stored("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json")),
            codex_login: stored("CODEX_HOME", ".codex", "auth.json"),
            // The variable names another home, and not the folder in it.
            gemini_login: stored(gemini::HOME, "", ".gemini/oauth_creds.json"),
            copilot_type: of_environment(COPILOT_TYPE),
            // The program gets it, so it is the environment's and no file's.
            no_proxy: ["NO_PROXY", "no_proxy"]
                .into_iter()
                .filter_map(of_environment)
                .find(|hosts| !hosts.is_empty()),
            secrets: Vec::new(),
        }
    }
}

/// A program and its arguments, read before anything starts: some would lead past the gateway.
pub struct AskedProgram {
    program: OsString,
    args: AskedArguments,
}

enum AskedArguments {
    ClaudeCode(ClaudeArguments),
    Codex(CodexArguments),
    Gemini(Vec<OsString>),
    Other(Vec<OsString>),
}

impl AskedProgram {
    /// Reads the arguments as the program of this name would.
    pub fn read(program: &OsStr, args: &[OsString]) -> Result<Self, BadArguments> {
        let args = match base_name(program).as_str() {
            "claude" => AskedArguments::ClaudeCode(ClaudeArguments::read(args)?),
            "codex" => AskedArguments::Codex(CodexArguments::read(args)?),
            "gemini" => {
                gemini::check_login()?;
                AskedArguments::Gemini(args.to_vec())
            }
            _ => AskedArguments::Other(args.to_vec()),
        };
        Ok(Self { program: program.to_owned(), args })
    }

    /// The program, as it was named.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// Refuses arguments that do not work in a box.
    ///
    /// # Errors
    /// Which one, and why.
    pub fn check_boxed(&self) -> Result<(), BadArguments> {
        match &self.args {
            AskedArguments::Codex(args) => args.check_sandbox(),
            AskedArguments::ClaudeCode(_) | AskedArguments::Gemini(_) | AskedArguments::Other(_) => Ok(()),
        }
    }

    /// Whose models it calls.
    pub const fn providers(&self) -> CalledProviders {
        match self.args {
            AskedArguments::ClaudeCode(_) => CalledProviders::Anthropic,
            AskedArguments::Codex(_) => CalledProviders::OpenAi,
            AskedArguments::Gemini(_) => CalledProviders::Gemini,
            AskedArguments::Other(_) => CalledProviders::Any,
        }
    }

    /// How to start it so that it calls the gateway, as each kind of program wants to be told. The home of its run may get a
    /// private file.
    pub fn start(
        self,
        at: SocketAddr,
        key: &str,
        user: &UserEnvironment,
        hidden: Vec<String>,
        home: &Path,
        search: WebSearch,
        sandbox: OwnSandbox,
    ) -> io::Result<ProgramStart> {
        let (anthropic, open_ai) = (format!("http://{at}"), format!("http://{at}/v1"));
        let is_claude = matches!(self.args, AskedArguments::ClaudeCode(_));
        let set = gateway_variables(at, key, user, is_claude).into_iter();
        // One of a file of variables is not in our own environment.
        let secrets = user.secrets.iter().map(|(name, value)| (name.clone(), OsString::from(value)));
        let mut set: Vec<(String, OsString)> = set.chain(secrets).collect();
        let (args, settings) = match self.args {
            AskedArguments::ClaudeCode(args) => {
                let (args, settings) = args.leading_to(&anthropic, key, home, sandbox)?;
                (args, Some(settings))
            }
            AskedArguments::Codex(args) => (args.leading_to(&open_ai, search, sandbox), None),
            AskedArguments::Gemini(args) => {
                // It says so each time if there are two.
                set.retain(|(name, _)| name != "GOOGLE_API_KEY");
                (args, None)
            }
            AskedArguments::Other(args) => {
                // Gemini's base URL has no version either.
                let place =
                    GatewayPlace { anthropic: &anthropic, open_ai: &open_ai, gemini: &anthropic, key };
                (place.fill(args), None)
            }
        };
        let removed = REMOVED.into_iter().chain(SWITCHES).map(str::to_owned).chain(hidden).collect();
        let home = HomeInode::read(home)?;
        Ok(ProgramStart { program: self.program, args, set, removed, settings, home })
    }
}

/// The variables that lead programs to the gateway. Claude Code asks before it uses an API key from the environment, and
/// takes a token without a word.
pub(super) fn gateway_variables(
    at: SocketAddr,
    key: &str,
    user: &UserEnvironment,
    is_claude: bool,
) -> Vec<(String, OsString)> {
    let (anthropic, open_ai) = (format!("http://{at}"), format!("http://{at}/v1"));
    let anthropic_key = if is_claude { "ANTHROPIC_AUTH_TOKEN" } else { "ANTHROPIC_API_KEY" };
    let here = "127.0.0.1,localhost";
    let no_proxy =
        user.no_proxy.as_ref().map_or_else(|| here.to_owned(), |others| format!("{others},{here}"));
    let copilot = user.copilot_type();
    let copilot_url = if copilot == "anthropic" { &anthropic } else { &open_ai };
    let set = [
        ("ANTHROPIC_BASE_URL", anthropic.as_str()),
        (anthropic_key, key),
        ("GEMINI_API_KEY", key),
        ("GOOGLE_API_KEY", key),
        ("GOOGLE_GEMINI_BASE_URL", anthropic.as_str()),
        ("OPENAI_BASE_URL", open_ai.as_str()),
        // Its older name.
        ("OPENAI_API_BASE", open_ai.as_str()),
        ("OPENAI_API_KEY", key),
        ("CODEX_API_KEY", key),
        ("COPILOT_PROVIDER_BASE_URL", copilot_url.as_str()),
        ("COPILOT_PROVIDER_API_KEY", key),
        (COPILOT_TYPE, copilot),
        ("NO_PROXY", no_proxy.as_str()),
        ("no_proxy", no_proxy.as_str()),
    ];
    set.map(|(name, value)| (name.to_owned(), OsString::from(value))).into()
}

/// The file of a program's stored login, if it exists: in the folder that a variable names, or in one of the home folder.
fn stored(variable: &str, below_home: &str, file: &str) -> Option<String> {
    let named = of_environment(variable).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = named.or_else(|| Some(folders::user_home()?.join(below_home)))?;
    let path = folder.join(file);
    path.exists().then(|| path.display().to_string())
}
