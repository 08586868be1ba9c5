//! Who speaks: the program, its session, its agent and that agent's parent, by the headers of a request. The headers
//! come from a program that runs hostile output, so an id that is not plain counts as missing.

use std::fmt;

use http::{HeaderMap, header};

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
pub struct Speaker {
    pub program: AgentProgram,
    pub session: Option<WireId>,
    pub agent: Option<WireId>,
    pub parent: Option<WireId>,
    /// What kind of sub-agent it is, as far as the program says.
    pub role: Option<WireId>,
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

impl Speaker {
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let id = |name: &str| WireId::new(one(headers, name)?.trim());
        let program = AgentProgram::of(headers);
        let (session, agent, parent, role) = match program {
            AgentProgram::ClaudeCode => (
                id("x-claude-code-session-id"),
                id("x-claude-code-agent-id"),
                id("x-claude-code-parent-agent-id"),
                None,
            ),
            // A thread without a parent is the main one.
            AgentProgram::Codex => {
                let parent = id("x-codex-parent-thread-id");
                let thread = id("thread-id");
                let session = id("session-id").or_else(|| id("session_id"));
                match parent {
                    Some(parent) => (session, thread, Some(parent), id("x-openai-subagent")),
                    None => (session.or(thread), None, None, id("x-openai-subagent")),
                }
            }
            AgentProgram::Other => (None, None, None, None),
        };
        let parent = parent.filter(|parent| agent.as_ref() != Some(parent));
        Self { program, session, agent, parent, role }
    }
}

impl AgentProgram {
    fn of(headers: &HeaderMap) -> Self {
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

/// A header that is there once.
fn one<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
