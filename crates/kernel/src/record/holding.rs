//! What a window held at a checkpoint: what a rollback brings back.

use crate::record::{Header, LeftOut, Tie};
use crate::words::{AgentId, Category, limit};
use serde::{Deserialize, Serialize};

/// An agent that told what it knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Teller {
    pub agent: AgentId,
    /// How many of its context messages are known by that.
    pub contexts: u32,
    /// Whether its first message is.
    pub system: bool,
}

/// What a window held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holding {
    /// The headers of its messages, the oldest first.
    pub headers: Vec<Header>,
    /// How many of them, at the end, were unread.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unread: u32,
    /// The tokens of each image that it showed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<u32>,
    /// What was left out by then, by category.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<(Category, LeftOut)>,
    /// Who had told what they know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tellers: Vec<Teller>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Holding {
    /// What makes no window, if anything does.
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
            Some("more is unread than there is")
        } else if self.tellers.len() > limit::SHARES_MAX || !self.headers.iter().all(is_shared) {
            Some("it names tellers that are not there")
        } else if self.images.len() != images {
            Some("it counts other images than its messages have")
        } else if self.left_out.len() > Category::COUNT {
            Some("it names a category twice")
        } else {
            None
        }
    }

    /// Whether its last message of the model asks for tools.
    pub(crate) fn has_asks(&self) -> bool {
        self.headers.iter().any(|header| header.tie == Tie::Asks)
    }

    /// How many tokens its first message has.
    pub(crate) fn first_tokens(&self) -> u64 {
        self.headers.first().map_or(0, |header| header.tokens.into())
    }
}
