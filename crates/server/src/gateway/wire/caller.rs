//! Who speaks: the program, its session, its agent and that agent's parent, by the headers of a request. The headers
//! come from a program that runs hostile output, so an id that is not plain counts as missing.

use std::fmt;

use http::{HeaderMap, header};
use serde::Deserialize;

use super::bounds::WIRE_ID_BYTES_MAX;

/// The program that calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentProgram {
    ClaudeCode,
    Codex,
    Other,
}

/// An id that a program gives a session, an agent or a kind of agent: letters, digits and `-`, `_`, `.`, `:`, `@`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WireId(String);

/// Who speaks. Without an `agent` it is the program's main agent; without a `parent` its agent is below that one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub program: AgentProgram,
    pub session: Option<WireId>,
    pub agent: Option<WireId>,
    pub parent: Option<WireId>,
    /// What kind of sub-agent it is, as far as the program says.
    pub role: Option<WireId>,
    /// How the program calls the agent, as far as it says. It is not an id: two agents may have the same name.
    pub name: Option<WireId>,
}

impl WireId {
    /// None if the text is empty, too long or not plain.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'@');
        let is_id = (1..=WIRE_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain);
        is_id.then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Caller {
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let id = |name: &str| WireId::new(one(headers, name)?.trim());
        let program = AgentProgram::from_headers(headers);
        let (session, agent, parent) = match program {
            AgentProgram::ClaudeCode => (
                id("x-claude-code-session-id"),
                id("x-claude-code-agent-id"),
                id("x-claude-code-parent-agent-id"),
            ),
            // The session is the thread of the main agent, which is the one without a parent.
            AgentProgram::Codex => {
                match (id("session-id"), id("thread-id"), id("x-codex-parent-thread-id")) {
                    (session, thread, Some(parent)) => {
                        let parent = Some(parent).filter(|parent| session.as_ref() != Some(parent));
                        (session, thread, parent)
                    }
                    (session, thread, None) => (session.or(thread), None, None),
                }
            }
            // opencode and Kilo give each sub-agent a separate session. The main one has no parent.
            AgentProgram::Other => match (id("x-session-id"), id("x-parent-session-id")) {
                (Some(session), Some(parent)) => (None, Some(session), Some(parent)),
                (session, _) => (session, None, None),
            },
        };
        let parent = parent.filter(|parent| agent.is_some() && agent.as_ref() != Some(parent));
        let (role, name) = match program {
            AgentProgram::Codex if agent.is_some() => (id("x-openai-subagent"), codex_name(headers)),
            AgentProgram::ClaudeCode | AgentProgram::Codex | AgentProgram::Other => (None, None),
        };
        Self { program, session, agent, parent, role, name }
    }
}

impl AgentProgram {
    fn from_headers(headers: &HeaderMap) -> Self {
        let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let originator = one(headers, "originator").unwrap_or_default();
        if headers.contains_key("x-claude-code-session-id") || agent.starts_with("claude-cli/") {
            Self::ClaudeCode
        } else if originator.starts_with("codex")
            || agent.starts_with("codex")
            || headers.contains_key("thread-id")
        {
            Self::Codex
        } else {
            Self::Other
        }
    }
}

/// Codex names an agent by its path from the main agent, among other things in one header.
fn codex_name(headers: &HeaderMap) -> Option<WireId> {
    #[derive(Deserialize)]
    struct TurnMetadata {
        agent_name: String,
    }
    let metadata = one(headers, "x-codex-turn-metadata")?;
    let TurnMetadata { agent_name } = serde_json::from_str(metadata).ok()?;
    WireId::new(agent_name.rsplit('/').next()?)
}

/// A header that is there once.
fn one<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
