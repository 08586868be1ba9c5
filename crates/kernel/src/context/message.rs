//! Messages and packets: what a model is shown.

pub(super) use crate::record::ToolAsk;
use std::borrow::Cow;
use std::sync::Arc;

use super::{Along, Facts, Folded, Shown, System, ToolDescription};
use crate::budget::Ceilings;
use crate::window::{ListKind, ListStore, Listed};
use crate::words::{AgentId, Body, By, Category, RoleName, Thought, TreeId};

/// One message of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// What the agent is and has to do.
    System(System),
    /// Somebody wrote to the agent, or a child that was not waited for has ended.
    Heard {
        from: By,
        text: String,
        /// What it is for.
        category: Category,
        /// What comes along with it.
        along: Option<Box<Along>>,
    },
    Said {
        body: Body,
        /// The tools it wants called.
        asks: Vec<ToolAsk>,
    },
    Result {
        /// The id that the model gave its call.
        id: Box<str>,
        /// Which tool, as the model wrote it.
        tool: Box<str>,
        text: String,
        /// Whether it could not do what it was asked.
        is_error: bool,
        /// What comes along with it.
        along: Option<Box<Along>>,
    },
    /// What another agent knows, by reference.
    Shared { from: AgentId, message: Arc<Self> },
    /// What the machine tells the agent and nobody else.
    Note(String),
    /// How the agent's answer does not fit its schema.
    Mismatch(String),
    /// What was left out of the packet, in short.
    Folded(Box<Folded>),
}

impl Message {
    /// What it is for.
    #[must_use]
    pub const fn category(&self) -> Category {
        match self {
            Self::System(_) => Category::System,
            Self::Heard { category, .. } => *category,
            Self::Said { .. } => Category::Dialog,
            Self::Result { .. } => Category::Output,
            Self::Shared { .. } | Self::Folded(_) => Category::Context,
            Self::Note(_) => Category::Internal,
            Self::Mismatch(_) => Category::Error,
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
            | Self::Mismatch(text) => text.into(),
            Self::Said { body, .. } => body.text.as_str().into(),
            Self::Shared { from, message } => format!("[what {from} knows]\n{}", message.text()).into(),
            Self::Folded(folded) => folded.to_string().into(),
        }
    }

    /// What the model thought that said it.
    #[must_use]
    pub fn thought(&self) -> Option<&Thought> {
        if let Self::Said { body, .. } = self { body.thought() } else { None }
    }

    /// The same message for another agent, which does not get what this one's model thought.
    pub(super) fn without_thought(self: Arc<Self>) -> Arc<Self> {
        match self.as_ref() {
            Self::Said { body, asks } if body.thought().is_some() => {
                Arc::new(Self::Said { body: body.clone().with_thought(None), asks: asks.clone() })
            }
            _ => self,
        }
    }

    /// What comes along with it.
    #[must_use]
    pub fn along(&self) -> Option<&Along> {
        match self {
            Self::Heard { along, .. } | Self::Result { along, .. } => along.as_deref(),
            Self::Shared { message, .. } => message.along(),
            Self::System(_) | Self::Said { .. } | Self::Note(_) | Self::Mismatch(_) | Self::Folded(_) => None,
        }
    }

    /// What stands behind its text: a driver writes it there, on a line of its own.
    #[must_use]
    pub fn facts(&self) -> Option<&Facts> {
        self.along()?.facts.as_deref()
    }

    /// A result tells what is left, once.
    pub(super) fn tell_left(&mut self, left: &Ceilings) {
        let along = match self {
            Self::Result { along, .. } => along,
            Self::Heard { category: Category::Output, along, .. } => along,
            _ => return,
        };
        let facts = along.get_or_insert_default().facts.get_or_insert_default();
        facts.left.get_or_insert(*left);
    }

    /// Its images and files as this packet shows them, in order. A driver hands over each that is whole, after its text,
    /// and for the others the line that stands in their place.
    pub fn parts(&self) -> impl Iterator<Item = Shown<'_>> {
        self.along().into_iter().flat_map(Along::shown)
    }

    /// How many images of it are shown.
    #[must_use]
    pub fn images(&self) -> usize {
        self.along().map_or(0, Along::images)
    }

    /// So many more of its images, the first that are shown, become placeholders.
    pub(super) fn blank(&mut self, images: u8) {
        match self {
            Self::Heard { along: Some(along), .. } | Self::Result { along: Some(along), .. } => {
                along.blank = along.blank.saturating_add(images);
            }
            // Whoever told it goes on seeing them.
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
            Message::Said { .. } | Message::Shared { .. } | Message::Note(_) | Message::Mismatch(_) => {
                ListKind::Other
            }
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

    /// A packet that is still out keeps what it had.
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

/// A long output that is a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offloaded {
    /// What the file is called.
    pub name: String,
    /// How many bytes it has.
    pub bytes: u64,
}

/// What one model call sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The messages, the oldest first. Shared: a longer context does not cost more to hand over.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// The tools that may be called.
    pub tools: Arc<[ToolDescription]>,
    /// How many tokens all of it has at most.
    pub tokens: u64,
}

/// Where a call comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The tree, which is the trace.
    pub tree: TreeId,
    /// Ids from the root down to the agent itself.
    pub path: Box<[AgentId]>,
    pub role: RoleName,
    /// What it is to do.
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

    /// How far below the root the agent is.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.path.len() - 1
    }
}
