//! A text that crosses a boundary: bounded inline, the rest by reference.

use serde::{Deserialize, Serialize};

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
    pub rest: Option<BlobRef>,
}

/// A blob, by what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobRef {
    /// The BLAKE3 hash of the bytes, in hex.
    pub hash: String,
    /// How many bytes.
    pub bytes: u64,
}

impl Body {
    /// A text that is whole.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), rest: None }
    }

    pub(crate) fn checked(&self, what: &'static str) -> Result<(), Refusal> {
        check_text(what, &self.text, limit::TEXT_BYTES_MAX)
    }
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
