//! What a window stores of a message.

use serde::{Deserialize, Serialize};

use crate::words::Category;

/// The serialized form: tokens, category, tie, images.
type Row = (u32, Category, Tie, u8);

/// What a window stores of a message: eight bytes, no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Header {
    /// Upper bound on its tokens, overhead included.
    pub tokens: u32,
    pub category: Category,
    pub tie: Tie,
    /// The number of its images, at most 255.
    pub images: u8,
}

/// How a message depends on others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tie {
    Free,
    /// It came through the inbox. The newest one that somebody wrote is never dropped.
    Letter,
    /// It asks for tools; their results follow.
    Asks,
    /// It answers the last message that asked, and is never kept without it.
    Answers,
    /// Another agent shared it: the one at this index among the agents that shared something.
    #[serde(rename = "told")]
    Shared(u8),
    /// The digest of left-out messages. Never dropped.
    Folded,
}

impl From<Row> for Header {
    fn from((tokens, category, tie, images): Row) -> Self {
        Self { tokens, category, tie, images }
    }
}

impl From<Header> for Row {
    fn from(Header { tokens, category, tie, images }: Header) -> Self {
        (tokens, category, tie, images)
    }
}

impl Header {
    #[must_use]
    pub fn new(tokens: u64, category: Category, tie: Tie) -> Self {
        let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        Self { tokens, category, tie, images: 0 }
    }

    /// Whether it is a context message that no other agent shared.
    #[must_use]
    pub const fn is_own_context(&self) -> bool {
        matches!(self.category, Category::Context) && !matches!(self.tie, Tie::Folded | Tie::Shared(_))
    }

    /// As part of another agent's conversation, where it is not tied to the agent that shared it.
    pub(crate) fn forked(self) -> Self {
        let tie = match self.tie {
            Tie::Shared(_) => Tie::Free,
            tie @ (Tie::Free | Tie::Letter | Tie::Asks | Tie::Answers | Tie::Folded) => tie,
        };
        Self { tie, ..self }
    }

    #[must_use]
    pub fn with_images(self, images: usize) -> Self {
        Self { images: u8::try_from(images).unwrap_or(u8::MAX), ..self }
    }
}
