//! A text that crosses a boundary: bounded inline, the rest by reference.

use serde::{Deserialize, Serialize};

use crate::id::BlobHash;
use crate::limit;
use crate::refusal::Refusal;

/// A text of bounded size. Where the original was larger, `text` is its preview and `rest` names the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// The text, or the preview of it.
    pub text: String,
    /// The whole, if `text` is only a preview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Box<BlobRef>>,
    /// How many tokens `text` has at most, if somebody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The byte of `text` at which the beginning of the whole ends and its end begins, if both are shown. Whoever reads
    /// it asks [`parts`](Self::parts), which trusts no journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<u32>,
}

/// A blob, by what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobRef {
    /// The hash of the bytes.
    pub hash: BlobHash,
    /// How many bytes.
    pub bytes: u64,
}

impl Body {
    /// A text that is whole.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), rest: None, tokens: None, gap: None }
    }

    /// The head and the tail of the whole, if `text` is these two. A gap that is not between two characters of it, or
    /// with nothing to be left out, is none.
    #[must_use]
    pub fn parts(&self) -> Option<(&str, &str)> {
        self.rest.as_ref()?;
        self.text.split_at_checked(usize::try_from(self.gap?).ok()?)
    }

    /// Has its text counted.
    pub fn count(&mut self, tokens: &dyn Fn(&str) -> u64) {
        self.tokens = Some(tokens(&self.text));
    }

    /// This, cut to what a journal takes. Reports are not refused, so they are cut.
    pub(crate) fn bounded(&self) -> Self {
        Self {
            text: cut(&self.text, limit::TEXT_BYTES_MAX),
            rest: self.rest.clone(),
            tokens: self.tokens.map(|tokens| tokens.min(limit::TEXT_BYTES_MAX as u64)),
            gap: self.gap,
        }
    }

    /// Whether nothing is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.text.is_empty() && self.rest.is_none() && self.tokens.is_none() && self.gap.is_none()
    }

    /// The most tokens that the text can have: what was counted, or else its bytes, because no token is shorter.
    #[must_use]
    pub fn tokens_max(&self) -> u64 {
        let bytes = self.text.len() as u64;
        self.tokens.map_or(bytes, |tokens| tokens.min(bytes))
    }

    pub(crate) fn checked(&self, what: &'static str) -> Result<(), Refusal> {
        check_text(what, &self.text, limit::TEXT_BYTES_MAX)
    }
}

/// A text, cut at a character so that it has at most so many bytes.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    let end = (0..=text.len().min(bytes_max)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text[..end].to_owned()
}

/// Refuses a text above its bound.
pub(crate) fn check_text(what: &'static str, text: &str, bytes_max: usize) -> Result<(), Refusal> {
    if text.len() > bytes_max {
        return Err(Refusal::TextTooLong { what: what.to_owned(), bytes: text.len(), bytes_max });
    }
    Ok(())
}

/// Refuses a text that is empty or above its bound.
pub(crate) fn check_said(what: &'static str, text: &str, bytes_max: usize) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::TextEmpty { what: what.to_owned() });
    }
    check_text(what, text, bytes_max)
}
