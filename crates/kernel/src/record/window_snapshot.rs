//! The content of a window at a checkpoint, which a rollback restores.

use crate::primitives::{AgentId, Category, limit};
use crate::record::{Header, LeftOut, Tie};
use serde::{Deserialize, Serialize};

/// An agent that shared its context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextSharer {
    pub agent: AgentId,
    /// How many of its context messages were shared.
    pub contexts: u32,
    /// Whether its first message was shared.
    pub system: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSnapshot {
    /// Headers of its messages, oldest first.
    pub headers: Vec<Header>,
    /// How many at the end were unread.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unread: u32,
    /// Tokens of each image shown, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<u32>,
    /// What had been left out, by category.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<(Category, LeftOut)>,
    /// Agents that had shared their context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tellers: Vec<ContextSharer>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl WindowSnapshot {
    /// Why it is not a valid window, if it is not.
    pub(crate) fn wrong(&self) -> Option<&'static str> {
        let is_shared = |header: &Header| match header.tie {
            Tie::Shared(place) => usize::from(place) < self.tellers.len(),
            Tie::Free | Tie::Letter | Tie::Asks | Tie::Answers | Tie::Folded => true,
        };
        let images = self.headers.iter().map(|header| usize::from(header.images)).sum::<usize>();
        if self.headers.first().is_none_or(|first| first.category != Category::System) {
            Some("it does not begin with what the agent is")
        } else if self.headers.len() > limit::RESTORED_MESSAGES_MAX {
            Some("it has more messages than a journal takes at once")
        } else if self.unread as usize >= self.headers.len() {
            Some("it has fewer messages than unread ones")
        } else if self.tellers.len() > limit::SHARES_MAX || !self.headers.iter().all(is_shared) {
            Some("it names senders that do not exist")
        } else if self.images.len() != images {
            Some("it counts other images than its messages have")
        } else if self.left_out.len() > Category::COUNT {
            Some("it names a category twice")
        } else {
            None
        }
    }

    /// Whether the model's last message asks for tools.
    pub(crate) fn has_asks(&self) -> bool {
        self.headers.iter().any(|header| header.tie == Tie::Asks)
    }

    pub(crate) fn first_tokens(&self) -> u64 {
        self.headers.first().map_or(0, |header| header.tokens.into())
    }
}
