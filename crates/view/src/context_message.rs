//! A message of an agent's context as people and programs read it, with its whole text.

use serde::Serialize;
use spinney_journal::{Journal, JournalFault};
use spinney_kernel::budget::{Amounts, Ceilings};
use spinney_kernel::context::{Message, Shown};
use spinney_kernel::primitives::{Actor, AgentId, Category};
use spinney_kernel::record::ToolAsk;

use crate::recall::{KnownMessage, MessagePlace};
use crate::result::whole;

/// A message. What is not known is null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessageView {
    /// From 1, among those that are shown.
    pub number: u64,
    /// What it is for.
    pub category: Category,
    /// The role in which a model sees it.
    pub role: &'static str,
    /// The sender: a person, an agent or a tool. `None` for the agent's own texts and its first message.
    pub from: Option<MessageSender>,
    /// Upper bound on its tokens.
    pub tokens: Option<u64>,
    /// Where it is.
    pub place: MessagePlace,
    /// Whether it is the result of a tool that failed.
    pub is_error: bool,
    /// Its whole text.
    pub text: String,
    /// The tools that it asks for.
    pub asks: Vec<MessageAsk>,
    /// What the provider reported for it as output of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// What its model thought before it said that, where the provider shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// What a child used, and what its parent had left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<MessageFacts>,
    /// What is not text, such as images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MessagePart>,
}

/// Who sent a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum MessageSender {
    /// A person, an agent or another actor.
    Actor(Actor),
    /// The agent whose context is shared.
    Agent {
        /// The agent.
        agent: AgentId,
    },
    /// The tool whose result it is.
    Tool {
        /// As its model called it.
        tool: String,
    },
}

/// A tool that a message asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessageAsk {
    /// By which its result is found.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// As JSON, or as the model wrote it.
    pub args: String,
}

/// What a child used, and what its parent had left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessageFacts {
    /// By the child and everything below it.
    pub used: Option<Amounts>,
    /// When the parent read this.
    pub left: Option<Ceilings>,
}

/// A part of a message that is not text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessagePart {
    /// Such as image.
    pub kind: String,
    /// As it was given.
    pub name: Option<String>,
    /// Its media type.
    pub media: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// The hash of its bytes, if the journal has them.
    pub blob: Option<String>,
    /// Whether the window has only a placeholder.
    pub is_left_out: bool,
}

impl MessageView {
    /// That of a known message. A text that cannot be read is missing or cut, and the fault is returned with the rest.
    pub async fn read(known: &KnownMessage, number: u64, journal: &dyn Journal) -> (Self, Vec<MessageFault>) {
        let KnownMessage { message, tokens, output, place } = known;
        let mut faults = Vec::new();
        let text = text(message, journal).await.unwrap_or_else(|(preview, fault)| {
            faults.push(MessageFault::Text(fault));
            preview
        });
        let reasoning = reasoning(message, journal).await.unwrap_or_else(|fault| {
            faults.push(MessageFault::Reasoning(fault));
            None
        });
        let view = Self {
            number,
            category: message.category(),
            role: role(message),
            from: sender(message),
            tokens: at_most(message, *tokens),
            place: *place,
            is_error: matches!(message.as_ref(), Message::Result { is_error: true, .. }),
            text,
            asks: asks(message),
            output_tokens: *output,
            reasoning,
            facts: message.facts().map(|facts| MessageFacts { used: facts.used, left: facts.left }),
            parts: message.parts().map(part).collect(),
        };
        (view, faults)
    }
}

/// A text of a message that cannot be read. The rest is better than none.
#[derive(Debug, thiserror::Error)]
pub enum MessageFault {
    /// Only its start is there.
    #[error("only the start of the answer can be shown")]
    Text(#[source] JournalFault),
    /// What the model thought is missing.
    #[error("what the model thought cannot be shown")]
    Reasoning(#[source] JournalFault),
}

/// Its whole text, or the start of it with the fault of the rest.
async fn text(message: &Message, journal: &dyn Journal) -> Result<String, (String, JournalFault)> {
    // A shared message may be shared again.
    let mut inner = message;
    while let Message::Shared { message, .. } = inner {
        inner = message;
    }
    match inner {
        Message::Said { body, .. } => whole(body, journal).await.map_err(|fault| (body.text.clone(), fault)),
        Message::Shared { .. }
        | Message::System(_)
        | Message::Heard { .. }
        | Message::Result { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_)
        | Message::Folded(_) => Ok(inner.text().into_owned()),
    }
}

async fn reasoning(message: &Message, journal: &dyn Journal) -> Result<Option<String>, JournalFault> {
    let Some(blob) = message.thought().and_then(|thought| thought.reasoning.as_ref()) else {
        return Ok(None);
    };
    let bytes = journal.blob(blob).await?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Upper bound on its tokens. The result of a wait is counted before its text is known, with room for a list of
/// sources; no text has more tokens than bytes.
fn at_most(message: &Message, tokens: Option<u64>) -> Option<u64> {
    let is_text = matches!(message, Message::Result { .. }) && message.parts().next().is_none();
    let facts = message.facts().map_or(0, |facts| facts.to_string().len() + 1);
    let bytes = (message.text().len() + facts) as u64;
    tokens.map(|tokens| if is_text { tokens.min(bytes) } else { tokens })
}

const fn role(message: &Message) -> &'static str {
    match message {
        Message::System(_) => "system",
        Message::Heard { .. }
        | Message::Shared { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_)
        | Message::Folded(_) => "user",
        Message::Said { .. } => "assistant",
        Message::Result { .. } => "tool",
    }
}

fn sender(message: &Message) -> Option<MessageSender> {
    match message {
        Message::Heard { from, .. } => Some(MessageSender::Actor(from.clone())),
        Message::Shared { from, .. } => Some(MessageSender::Agent { agent: from.clone() }),
        Message::Result { tool, .. } => Some(MessageSender::Tool { tool: tool.to_string() }),
        Message::System(_)
        | Message::Said { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_)
        | Message::Folded(_) => None,
    }
}

fn asks(message: &Message) -> Vec<MessageAsk> {
    let Message::Said { asks, .. } = message else { return Vec::new() };
    let ask = |ToolAsk { id, tool, args, .. }: &ToolAsk| MessageAsk {
        id: id.clone(),
        tool: tool.clone(),
        args: args.clone(),
    };
    asks.iter().map(ask).collect()
}

fn part(shown: Shown<'_>) -> MessagePart {
    let part = shown.part();
    MessagePart {
        kind: part.kind().as_str().to_owned(),
        name: Some(part.name().to_string()),
        media: Some(part.media().to_string()),
        bytes: part.blob().bytes,
        blob: Some(part.blob().hash.to_string()),
        is_left_out: matches!(shown, Shown::LeftOut(_)),
    }
}
