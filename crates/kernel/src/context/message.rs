//! Messages and packets: what a model is shown.

pub(super) use crate::record::ToolAsk;
use std::borrow::Cow;
use std::sync::Arc;

use super::{Along, Facts, Folded, Shown, System, ToolDescription};
use crate::budget::Ceilings;
use crate::window::{ListKind, ListStore, Listed};
use crate::words::{AgentId, Body, By, Category, RoleName, Thought, TreeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The agent's first message: its identity and task.
    System(System),
    /// A message to the agent, or the end of a child that it did not wait for.
    Heard { from: By, text: String, category: Category, along: Option<Box<Along>> },
    Said {
        body: Body,
        /// The tools it asks for.
        asks: Vec<ToolAsk>,
    },
    Result {
        /// The model's id for its call.
        id: Box<str>,
        /// The tool's name as the model wrote it.
        tool: Box<str>,
        text: String,
        is_error: bool,
        along: Option<Box<Along>>,
    },
    /// Another agent's message, by reference.
    Shared { from: AgentId, message: Arc<Self> },
    /// A notice from the system to this agent only.
    Note(String),
    /// How the agent's answer fails to match its schema.
    Mismatch(String),
    /// The notice that the agent repeats a tool call that brings nothing new.
    Repeated(String),
    /// The digest of messages left out of the packet.
    Folded(Box<Folded>),
}

impl Message {
    #[must_use]
    pub const fn category(&self) -> Category {
        match self {
            Self::System(_) => Category::System,
            Self::Heard { category, .. } => *category,
            Self::Said { .. } => Category::Dialog,
            Self::Result { .. } => Category::Output,
            Self::Shared { .. } | Self::Folded(_) => Category::Context,
            Self::Note(_) => Category::Internal,
            Self::Mismatch(_) | Self::Repeated(_) => Category::Error,
        }
    }

    /// Its text, as a model reads it.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::System(system) => system.to_string().into(),
            Self::Heard { text, .. }
            | Self::Result { text, .. }
            | Self::Note(text)
            | Self::Mismatch(text)
            | Self::Repeated(text) => text.into(),
            Self::Said { body, .. } => body.text.as_str().into(),
            Self::Shared { from, message } => format!("[what {from} knows]\n{}", message.text()).into(),
            Self::Folded(folded) => folded.to_string().into(),
        }
    }

    /// The reasoning of the model that wrote it.
    #[must_use]
    pub fn thought(&self) -> Option<&Thought> {
        if let Self::Said { body, .. } = self { body.thought() } else { None }
    }

    /// For another agent, which must not get this model's reasoning.
    pub(super) fn without_thought(self: Arc<Self>) -> Arc<Self> {
        match self.as_ref() {
            Self::Said { body, asks } if body.thought().is_some() => {
                Arc::new(Self::Said { body: body.clone().with_thought(None), asks: asks.clone() })
            }
            _ => self,
        }
    }

    #[must_use]
    pub fn along(&self) -> Option<&Along> {
        match self {
            Self::Heard { along, .. } | Self::Result { along, .. } => along.as_deref(),
            Self::Shared { message, .. } => message.along(),
            Self::System(_)
            | Self::Said { .. }
            | Self::Note(_)
            | Self::Mismatch(_)
            | Self::Repeated(_)
            | Self::Folded(_) => None,
        }
    }

    /// Facts that a driver appends to the text, on a line of their own.
    #[must_use]
    pub fn facts(&self) -> Option<&Facts> {
        self.along()?.facts.as_deref()
    }

    /// Adds the remaining budget to a result, once.
    pub(super) fn tell_left(&mut self, left: &Ceilings) {
        let along = match self {
            Self::Result { along, .. } => along,
            Self::Heard { category: Category::Output, along, .. } => along,
            _ => return,
        };
        let facts = along.get_or_insert_default().facts.get_or_insert_default();
        facts.left.get_or_insert(*left);
    }

    /// Its images and files as this packet shows them, in order. A driver sends each whole one after the text, and a
    /// line in place of each other one.
    pub fn parts(&self) -> impl Iterator<Item = Shown<'_>> {
        self.along().into_iter().flat_map(Along::shown)
    }

    /// The number of images shown.
    #[must_use]
    pub fn images(&self) -> usize {
        self.along().map_or(0, Along::images)
    }

    /// Turns the first `images` images that are still shown into placeholders.
    pub(super) fn blank(&mut self, images: u8) {
        match self {
            Self::Heard { along: Some(along), .. } | Self::Result { along: Some(along), .. } => {
                along.blank = along.blank.saturating_add(images);
            }
            // The agent that shared it still sees them.
            Self::Shared { message, .. } => Arc::make_mut(message).blank(images),
            _ => {}
        }
    }
}

/// The messages of a list, shared with the packets that show them.
pub(super) type Texts = Arc<Vec<Arc<Message>>>;

impl Listed for Arc<Message> {
    fn kind(&self) -> ListKind {
        match self.as_ref() {
            Message::System(_) => ListKind::First,
            Message::Heard { .. } => ListKind::Letter,
            Message::Said { asks, .. } if !asks.is_empty() => ListKind::Asks,
            Message::Result { .. } => ListKind::Answers,
            Message::Folded(_) => ListKind::Folded,
            Message::Said { .. }
            | Message::Shared { .. }
            | Message::Note(_)
            | Message::Mismatch(_)
            | Message::Repeated(_) => ListKind::Other,
        }
    }
}

impl ListStore for Texts {
    type Message = Arc<Message>;

    fn all(&self) -> &[Arc<Message>] {
        self
    }

    fn all_mut(&mut self) -> &mut [Arc<Message>] {
        Self::make_mut(self)
    }

    /// Copy on write: a packet that is in use keeps its messages.
    fn insert(&mut self, place: usize, message: Arc<Message>) {
        let messages = Self::make_mut(self);
        // Most contexts of a large tree are short, and there are many of them.
        if messages.len() == messages.capacity() {
            messages.reserve_exact(messages.len() / 2 + 1);
        }
        messages.insert(place, message);
    }

    fn retain(&mut self, mut stays: impl FnMut() -> bool) {
        Self::make_mut(self).retain(|_| stays());
    }
}

/// A long output that was stored as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offloaded {
    pub name: String,
    pub bytes: u64,
}

/// What one model call sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Oldest first. Shared, so that a long context costs no more to pass on.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// The tools it may call.
    pub tools: Arc<[ToolDescription]>,
    /// Upper bound on all tokens.
    pub tokens: u64,
}

/// Where a call comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The tree's id, which is also the trace id.
    pub tree: TreeId,
    /// Ids from the root down to the agent itself.
    pub path: Box<[AgentId]>,
    pub role: RoleName,
    pub goal: Arc<str>,
}

impl Origin {
    #[must_use]
    pub fn agent(&self) -> &AgentId {
        match self.path.last() {
            Some(agent) => agent,
            None => unreachable!("a path ends with the agent itself"),
        }
    }

    #[must_use]
    pub fn depth(&self) -> usize {
        self.path.len() - 1
    }
}
