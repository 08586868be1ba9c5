//! What a window stores of a message.

use serde::{Deserialize, Serialize};

use crate::primitives::{Category, TokenCount};

/// The serialized form: tokens, category, tie, images, and an estimate of the tokens if they are only a bound.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Row {
    Exact(u32, Category, Tie, u8),
    Estimated(u32, Category, Tie, u8, u32),
}

/// What a window stores of a message: twelve bytes, no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Header {
    /// Upper bound on its tokens, overhead included.
    pub tokens: u32,
    /// What they probably are.
    pub estimate: u32,
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
    /// It came through the inbox. The newest one from a person or agent is never dropped.
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
    fn from(row: Row) -> Self {
        let (tokens, category, tie, images, estimate) = match row {
            Row::Exact(tokens, category, tie, images) => (tokens, category, tie, images, tokens),
            Row::Estimated(tokens, category, tie, images, estimate) => {
                (tokens, category, tie, images, estimate.min(tokens))
            }
        };
        Self { tokens, estimate, category, tie, images }
    }
}

impl From<Header> for Row {
    fn from(Header { tokens, estimate, category, tie, images }: Header) -> Self {
        if estimate == tokens {
            Self::Exact(tokens, category, tie, images)
        } else {
            Self::Estimated(tokens, category, tie, images, estimate)
        }
    }
}

impl Header {
    #[must_use]
    pub fn new(tokens: TokenCount, category: Category, tie: Tie) -> Self {
        Self { tokens: 0, estimate: 0, category, tie, images: 0 }.with_tokens(tokens)
    }

    #[must_use]
    pub fn counted(&self) -> TokenCount {
        TokenCount::new(self.tokens.into(), self.estimate.into())
    }

    #[must_use]
    pub(crate) fn with_tokens(self, tokens: TokenCount) -> Self {
        let [tokens, estimate] =
            [tokens.bound(), tokens.estimate()].map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
        Self { tokens, estimate, ..self }
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
