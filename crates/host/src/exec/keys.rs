//! Whether the user's environment has what the calls of a program need: a key of its provider, or a server of the user's
//! own. It is checked before anything starts, because a program without a key fails late, and in its own words.

use super::environment::UserEnvironment;

/// Whose models a program calls, judging by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledProviders {
    /// Anthropic's.
    Anthropic,
    /// OpenAI's.
    OpenAi,
    /// Google's Gemini.
    Gemini,
    /// Any of them.
    Any,
}

/// Why a program would get no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// Claude Code has a login that no budget can bound.
    #[error(
        "{program} has only a subscription login ({login}), which exec does not use: a subscription has no price per call, so no budget can bound it. Set ANTHROPIC_API_KEY to a key of the Anthropic API, whose calls are billed by tokens, or run {program} without exec"
    )]
    ClaudeLogin {
        /// The program.
        program: String,
        /// Where its login is.
        login: String,
    },
    /// Codex has one.
    #[error(
        "{program} has a stored login ({login}), which exec does not use: a login with a ChatGPT subscription has no price per call, so no budget can bound it. Set OPENAI_API_KEY to a key of the OpenAI API, whose calls are billed by tokens, or run {program} without exec"
    )]
    CodexLogin {
        /// The program.
        program: String,
        /// Where its login is.
        login: String,
    },
    /// There is no key of Anthropic.
    #[error(
        "no key for {0}: set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), or set ANTHROPIC_BASE_URL to a server that needs none"
    )]
    Anthropic(String),
    /// There is no key of OpenAI.
    #[error(
        "no key for {0}: set OPENAI_API_KEY (or CODEX_API_KEY), or set OPENAI_BASE_URL to a server that needs none"
    )]
    OpenAi(String),
    /// Gemini CLI has a login.
    #[error(
        "{program} has a stored login ({login}), which exec does not use: a login with a Google account has no price per call, so no budget can bound it. Set GEMINI_API_KEY to a key of the Gemini API, whose calls are billed by tokens, or run {program} without exec"
    )]
    GeminiLogin {
        /// The program.
        program: String,
        /// Where its login is.
        login: String,
    },
    /// There is no key of Gemini.
    #[error(
        "no key for {0}: set GEMINI_API_KEY (or GOOGLE_API_KEY), or set GOOGLE_GEMINI_BASE_URL to a server that needs none"
    )]
    Gemini(String),
    /// There is none at all.
    #[error(
        "no key for {0}: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or set ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL to a server that needs none"
    )]
    Any(String),
}

/// Refuses a program that would get no answer.
pub fn check(program: &str, called: CalledProviders, user: &UserEnvironment) -> Result<(), NoKey> {
    let anthropic = user.anthropic_key.is_some() || user.anthropic_base_url.is_some();
    let open_ai = user.open_ai_key.is_some() || user.open_ai_base_url.is_some();
    let gemini = user.gemini_key.is_some() || user.gemini_base_url.is_some();
    let name = || program.to_owned();
    match called {
        CalledProviders::Anthropic if !anthropic => Err(match user.claude_login.clone() {
            Some(login) => NoKey::ClaudeLogin { program: name(), login },
            None => NoKey::Anthropic(name()),
        }),
        CalledProviders::OpenAi if !open_ai => Err(match user.codex_login.clone() {
            Some(login) => NoKey::CodexLogin { program: name(), login },
            None => NoKey::OpenAi(name()),
        }),
        CalledProviders::Gemini if !gemini => Err(match user.gemini_login.clone() {
            Some(login) => NoKey::GeminiLogin { program: name(), login },
            None => NoKey::Gemini(name()),
        }),
        CalledProviders::Any if !anthropic && !open_ai && !gemini => Err(NoKey::Any(name())),
        CalledProviders::Anthropic
        | CalledProviders::OpenAi
        | CalledProviders::Gemini
        | CalledProviders::Any => Ok(()),
    }
}
