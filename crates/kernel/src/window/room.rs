//! The tokens that a message takes in a window.

use crate::words::Part;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Upper bound on the tokens of all of it.
    pub tokens: u64,
    /// The tokens of each image, in order: what is freed when it becomes a placeholder.
    pub images: Vec<u32>,
}

impl Room {
    /// Each part adds its own tokens and the line that names it.
    pub(crate) fn new(tokens: u64, parts: &[Part]) -> Self {
        let own = |part: &Part| u32::try_from(part.tokens_max()).unwrap_or(u32::MAX);
        let of = |part: &Part| part.line_tokens().saturating_add(own(part).into());
        let images = parts.iter().filter(|part| part.is_image()).map(own).collect();
        Self { tokens: parts.iter().map(of).fold(tokens, u64::saturating_add), images }
    }

    pub(crate) fn plus(self, tokens: u64) -> Self {
        Self { tokens: self.tokens.saturating_add(tokens), ..self }
    }
}

impl From<u64> for Room {
    /// Text without parts.
    fn from(tokens: u64) -> Self {
        Self { tokens, images: Vec::new() }
    }
}
