//! The tokens that a message takes in a window.

use crate::primitives::{Part, TokenCount};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// The tokens of all of it.
    pub tokens: TokenCount,
    /// The tokens of each image, in order: what is freed when it becomes a placeholder.
    pub images: Vec<u32>,
}

impl Room {
    /// Each part adds its own tokens and the line that names it.
    pub(crate) fn new(tokens: TokenCount, parts: &[Part]) -> Self {
        let own = |part: &Part| part.counted().at_most(u32::MAX.into());
        let of = |part: &Part| part.line_tokens().plus(own(part));
        let image = |part: &Part| u32::try_from(own(part).bound()).unwrap_or(u32::MAX);
        let images = parts.iter().filter(|part| part.is_image()).map(image).collect();
        Self { tokens: parts.iter().map(of).fold(tokens, TokenCount::plus), images }
    }

    pub(crate) fn plus(self, tokens: TokenCount) -> Self {
        Self { tokens: self.tokens.plus(tokens), ..self }
    }
}

impl From<TokenCount> for Room {
    /// Text without parts.
    fn from(tokens: TokenCount) -> Self {
        Self { tokens, images: Vec::new() }
    }
}
