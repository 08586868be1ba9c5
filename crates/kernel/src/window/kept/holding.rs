//! What a window held at a checkpoint, and how it holds that again. The size is not part of it: how much fits is a
//! matter of the present.

use serde::{Deserialize, Serialize};

use super::{Seldom, Teller, Window};
use crate::id::AgentId;
use crate::limit;
use crate::window::{Category, Header, LeftOut, Tie};

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
        let is_told = |header: &Header| match header.tie {
            Tie::Told(place) => usize::from(place) < self.tellers.len(),
            Tie::Free | Tie::Letter | Tie::Asks | Tie::Answers | Tie::Folded => true,
        };
        let images = self.headers.iter().map(|header| usize::from(header.images)).sum::<usize>();
        if self.headers.first().is_none_or(|first| first.category != Category::System) {
            Some("it does not begin with what the agent is")
        } else if self.headers.len() > limit::RESTORED_MESSAGES_MAX {
            Some("it has more messages than a journal takes at once")
        } else if self.unread as usize >= self.headers.len() {
            Some("more is unread than there is")
        } else if self.tellers.len() > limit::SHARES_MAX || !self.headers.iter().all(is_told) {
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

impl Window {
    /// What it holds.
    #[must_use]
    pub(crate) fn holding(&self) -> Holding {
        Holding {
            headers: self.headers.to_vec(),
            unread: self.unread,
            images: self.seldom.as_ref().map(|seldom| seldom.images.clone()).unwrap_or_default(),
            left_out: self.left_out().collect(),
            tellers: self.seldom.as_ref().map(|seldom| seldom.tellers.clone()).unwrap_or_default(),
        }
    }

    /// Holds this from now on. Its first message is its own: what an agent is was settled at its birth.
    pub(crate) fn restore(&mut self, holding: &Holding) {
        let first = self.headers.first().copied();
        self.headers = holding.headers.iter().copied().collect();
        if let (Some(first), Some(header)) = (first, self.headers.first_mut()) {
            *header = first;
        }
        self.unread = holding.unread;
        let (tellers, images) = (holding.tellers.clone(), holding.images.clone());
        let mut seldom = Seldom { tellers, images, ..Seldom::default() };
        for (category, left) in &holding.left_out {
            seldom.left_out[category.place()] = *left;
        }
        self.seldom = Some(Box::new(seldom)).filter(|seldom| **seldom != Seldom::default());
    }

    /// Knows at most so many of another's context messages: those beyond are not there any more, and what comes in
    /// their place is new.
    pub(crate) fn knows_at_most(&mut self, teller: &AgentId, contexts: u32) {
        let tellers = self.seldom.iter_mut().flat_map(|seldom| &mut seldom.tellers);
        for known in tellers.filter(|known| known.agent == *teller) {
            known.contexts = known.contexts.min(contexts);
        }
    }

    /// How many messages its agent's context has, those that were left out too.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let held = self.headers.iter().filter(|header| header.tie != Tie::Folded).count() as u64;
        held + self.left_out().map(|(_, left)| u64::from(left.messages)).sum::<u64>()
    }
}
