//! What a window keeps of a message.

use serde::{Deserialize, Serialize};

use crate::words::Category;

/// How a header is written: tokens, category, tie, images.
type Row = (u32, Category, Tie, u8);

/// What a window keeps of a message: eight bytes, and no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Header {
    /// The most tokens it has, what stands around it included.
    pub tokens: u32,
    /// What it is for.
    pub category: Category,
    /// What it hangs together with.
    pub tie: Tie,
    /// How many images are in it, up to 255.
    pub images: u8,
}

/// What a message hangs together with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tie {
    Free,
    /// It came through the inbox; the newest that somebody wrote stays.
    Letter,
    /// It asks for tools; what they return follows.
    Asks,
    /// It answers the last message that asked: never without it.
    Answers,
    /// Another agent knows it: the one at this place among those that told something.
    #[serde(rename = "told")]
    Shared(u8),
    /// It tells in short what was left out. Never left out itself.
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
    /// Of a message with so many tokens.
    #[must_use]
    pub fn new(tokens: u64, category: Category, tie: Tie) -> Self {
        let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        Self { tokens, category, tie, images: 0 }
    }

    /// Whether it is a context message that nobody else told.
    #[must_use]
    pub const fn is_own_context(&self) -> bool {
        matches!(self.category, Category::Context) && !matches!(self.tie, Tie::Folded | Tie::Shared(_))
    }

    /// The same in the conversation of another agent: whoever told it told that one nothing.
    pub(crate) fn forked(self) -> Self {
        let tie = match self.tie {
            Tie::Shared(_) => Tie::Free,
            tie @ (Tie::Free | Tie::Letter | Tie::Asks | Tie::Answers | Tie::Folded) => tie,
        };
        Self { tie, ..self }
    }

    /// The same with so many images.
    #[must_use]
    pub fn with_images(self, images: usize) -> Self {
        Self { images: u8::try_from(images).unwrap_or(u8::MAX), ..self }
    }
}
