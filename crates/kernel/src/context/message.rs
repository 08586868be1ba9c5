//! Messages and packets: what a model is shown.

pub(super) use crate::record::ToolAsk;
use std::borrow::Cow;
use std::sync::Arc;

use super::{Attachments, Facts, Folded, Shown, System, ToolDescription};
use crate::budget::Ceilings;
use crate::primitives::{Actor, AgentId, Body, Category, RoleName, Thought, TokenCount, TreeId, limit};
use crate::window::{ListKind, ListStore, Listed};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The agent's first message: its identity and task.
    System(System),
    /// A message to the agent, or the end of a child that it did not wait for.
    Heard { from: Actor, text: String, category: Category, along: Option<Box<Attachments>> },
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
        along: Option<Box<Attachments>>,
    },
    /// Another agent's message, by reference.
    Shared { from: AgentId, message: Arc<Self>, shared_as: SharedAs },
    /// A notice from the system to this agent only.
    Note(String),
    /// How the agent's answer fails to match its schema.
    Mismatch(String),
    /// The notice that the agent repeats a tool call that brings nothing new.
    Repeated(String),
    /// The digest of messages left out of the packet.
    Folded(Box<Folded>),
}

/// How another agent's message is introduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedAs {
    /// Before rules 6: the reader could take another agent's task for its own.
    Known,
    Background,
}

impl SharedAs {
    pub(crate) const fn under(rules: u32) -> Self {
        if rules >= 6 { Self::Background } else { Self::Known }
    }

    /// The most tokens that it adds to a message: the line before it, and one more message for the reader's own task.
    pub(crate) const fn tokens(self) -> TokenCount {
        match self {
            Self::Known => limit::TOLD_TOKENS,
            Self::Background => limit::BACKGROUND_TOKENS,
        }
    }
}

/// The line before what another agent knows, around the agent's name.
const BACKGROUND: &str = "[background: what ";
const BACKGROUND_END: &str = " knows]\n";
const _: () = assert!(
    (BACKGROUND.len() + BACKGROUND_END.len()) as u64
        + limit::SENDER_TOKENS.bound()
        + limit::MESSAGE_TOKENS.bound()
        <= limit::BACKGROUND_TOKENS.bound()
);

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
            Self::Shared { from, message, shared_as } => {
                let text = message.text();
                match shared_as {
                    SharedAs::Known => format!("[what {from} knows]\n{text}").into(),
                    SharedAs::Background => format!("{BACKGROUND}{from}{BACKGROUND_END}{text}").into(),
                }
            }
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
    pub fn along(&self) -> Option<&Attachments> {
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

    /// Facts that a driver appends to the text, on their own line.
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
        self.along().into_iter().flat_map(Attachments::shown)
    }

    /// The number of images shown.
    #[must_use]
    pub fn images(&self) -> usize {
        self.along().map_or(0, Attachments::images)
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

/// The messages of a packet in the order in which a model reads them: what others shared with an agent at its start
/// comes before the agent's own task. Contexts keep the task in the first message, which no window drops.
pub(super) fn task_last(messages: Texts) -> Texts {
    let is_background =
        |message: &Message| matches!(message, Message::Shared { shared_as: SharedAs::Background, .. });
    let rest = messages.get(1..).unwrap_or_default();
    let leading = rest
        .iter()
        .take_while(|message| is_background(message) || matches!(message.as_ref(), Message::Folded(_)));
    let Some(last) = leading.enumerate().filter(|(_, message)| is_background(message)).last() else {
        return messages;
    };
    let Some(Message::System(system)) = messages.first().map(AsRef::as_ref) else { return messages };
    let (role, task) = system.split();
    let (background, own) = rest.split_at(last.0 + 1);
    let [role, task] = [role, task].map(|part| Arc::new(Message::System(part)));
    let all = [std::slice::from_ref(&role), background, std::slice::from_ref(&task), own];
    Arc::new(all.concat())
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
    /// Oldest first. Shared, so a long context costs no more to pass on.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// The tools it may call.
    pub tools: Arc<[ToolDescription]>,
    /// Upper bound on all tokens.
    pub tokens: u64,
}

impl Packet {
    /// One message, without tools.
    #[must_use]
    pub fn of_message(text: &str, tokens: u64) -> Self {
        let (from, category) = (Actor::RUNTIME, Category::Dialog);
        let message = Message::Heard { from, text: text.to_owned(), category, along: None };
        Self { messages: Arc::new(vec![Arc::new(message)]), tools: Arc::default(), tokens }
    }
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
