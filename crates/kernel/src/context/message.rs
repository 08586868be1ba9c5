//! Messages and packets: what a model is shown.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Along, Facts, Folded, Shown, System, ToolTold};
use crate::body::Body;
use crate::budget::Limits;
use crate::id::{AgentId, RoleName, TreeId};
use crate::input::By;
use crate::turn::Builtin;
use crate::window::Category;

/// One message of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// What the agent is and has to do.
    System(System),
    /// Somebody wrote to the agent, or a child that was not waited for has ended.
    Heard {
        /// Who.
        from: By,
        /// What.
        text: String,
        /// What it is for.
        category: Category,
        /// What comes along with it.
        along: Option<Box<Along>>,
    },
    /// The model answered.
    Said {
        /// What.
        body: Body,
        /// The tools it wants called.
        asks: Vec<ToolAsk>,
    },
    /// A tool returned.
    Result {
        /// The id that the model gave its call.
        id: Box<str>,
        /// Which tool, as the model wrote it.
        tool: Box<str>,
        /// What it returned.
        text: String,
        /// Whether it could not do what it was asked.
        is_error: bool,
        /// What comes along with it.
        along: Option<Box<Along>>,
    },
    /// What another agent knows, by reference.
    Told {
        /// Who.
        from: AgentId,
        /// Its message.
        message: Arc<Self>,
    },
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
            Self::Told { .. } | Self::Folded(_) => Category::Context,
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
            Self::Told { from, message } => format!("[what {from} knows]\n{}", message.text()).into(),
            Self::Folded(folded) => folded.to_string().into(),
        }
    }

    /// Whether what tools return comes next.
    pub(in crate::context) fn asks(&self) -> bool {
        matches!(self, Self::Said { asks, .. } if !asks.is_empty())
    }

    /// What comes along with it.
    #[must_use]
    pub fn along(&self) -> Option<&Along> {
        match self {
            Self::Heard { along, .. } | Self::Result { along, .. } => along.as_deref(),
            Self::Told { message, .. } => message.along(),
            Self::System(_) | Self::Said { .. } | Self::Note(_) | Self::Mismatch(_) | Self::Folded(_) => None,
        }
    }

    /// What stands behind its text: a driver writes it there, on a line of its own.
    #[must_use]
    pub fn facts(&self) -> Option<&Facts> {
        self.along()?.facts.as_deref()
    }

    /// A result tells what is left, once.
    pub(super) fn tell_left(&mut self, left: &Limits) {
        let along = match self {
            Self::Result { along, .. } => along,
            Self::Heard { category: Category::Output, along, .. } => along,
            Self::System(_)
            | Self::Heard { .. }
            | Self::Said { .. }
            | Self::Told { .. }
            | Self::Note(_)
            | Self::Mismatch(_)
            | Self::Folded(_) => return,
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
            Self::Told { message, .. } => Arc::make_mut(message).blank(images),
            Self::Heard { along: None, .. }
            | Self::Result { along: None, .. }
            | Self::System(_)
            | Self::Said { .. }
            | Self::Note(_)
            | Self::Mismatch(_)
            | Self::Folded(_) => {}
        }
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

/// A tool call as a model asks for it. Nothing in it is checked yet: the tool may not exist, the arguments may be
/// no JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolAsk {
    /// The id that the model gave it.
    pub id: String,
    /// Which tool.
    pub tool: String,
    /// The arguments.
    pub args: String,
    /// How many tokens all of it has at most, if somebody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u32>,
    /// Where it hands another agent a goal or a message: how many tokens that adds at most to what the other reads,
    /// if somebody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_tokens: Option<u32>,
}

impl ToolAsk {
    /// Has everything counted that a model will read of it, here or at another agent.
    pub fn count(&mut self, tokens: &dyn Fn(&str) -> u64) {
        let most = |tokens| u32::try_from(tokens).unwrap_or(u32::MAX);
        self.tokens =
            Some(most([&self.id, &self.tool, &self.args].map(|text| tokens(text)).into_iter().sum()));
        self.told_tokens = Builtin::told_tokens(&self.tool, &self.args, tokens).map(most);
    }

    /// The most tokens that it can have: what was counted, or else its bytes.
    #[must_use]
    pub fn tokens_max(&self) -> u64 {
        let bytes = (self.id.len() + self.tool.len() + self.args.len()) as u64;
        self.tokens.map_or(bytes, |tokens| u64::from(tokens).min(bytes))
    }
}

/// What one model call sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The messages, the oldest first. Shared: a longer context does not cost more to hand over.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// The tools that may be called.
    pub tools: Arc<[ToolTold]>,
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
    /// The agent's role.
    pub role: RoleName,
    /// What it is to do.
    pub goal: Arc<str>,
}

impl Origin {
    /// The agent itself.
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
