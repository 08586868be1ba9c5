//! What a provider wants back unchanged with the next turn: signed or encrypted reasoning. It is opaque to everyone
//! else, belongs to one model, and keeps its place among the texts and calls of its answer.
//!
//! An answer is a list of pieces. A piece that is only text or only a call is not repeated here: the list says how many
//! bytes of the answer's text stand there, or which call. So a call that was dropped meanwhile stays dropped.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::WireFormat;
use super::bounds::{BLOCKS_MAX, CONTINUATION_BYTES_MAX};

/// What one answer wants back.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Continuation {
    format: WireFormat,
    /// The model that was asked; no other is sent this.
    model: String,
    pub(super) pieces: Vec<Piece>,
}

/// A piece of an answer, in the provider's order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Piece {
    /// The provider's own JSON, byte for byte. Without it the piece is rewritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) raw: Option<Box<RawValue>>,
    /// How many bytes of the answer's text this is.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) text: usize,
    /// Which call this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<String>,
}

/// Why bytes are not continuation data.
#[derive(Debug, thiserror::Error)]
pub enum ContinuationError {
    #[error("continuation data has {bytes} bytes and the limit is {CONTINUATION_BYTES_MAX}")]
    TooLarge { bytes: usize },
    #[error("continuation data has {pieces} pieces and the limit is {BLOCKS_MAX}")]
    TooMany { pieces: usize },
    #[error("continuation data cannot be read")]
    Json(#[from] serde_json::Error),
}

impl Continuation {
    pub(super) fn new(format: WireFormat, model: &str, pieces: Vec<Piece>) -> Self {
        Self { format, model: model.to_owned(), pieces }
    }

    /// Whether it may go to this model.
    #[must_use]
    pub fn is_for(&self, format: WireFormat, model: &str) -> bool {
        self.format == format && self.model == model
    }

    /// The model that it belongs to.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// As bytes to keep.
    ///
    /// # Errors
    /// If it is too large to keep.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ContinuationError> {
        let bytes = serde_json::to_vec(self)?;
        within_bounds(&bytes)?;
        Ok(bytes)
    }

    /// From the bytes that were kept. It contains what the provider sent, byte for byte.
    ///
    /// # Errors
    /// If they are too large, or none that [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ContinuationError> {
        within_bounds(bytes)?;
        let read: Self = serde_json::from_slice(bytes)?;
        match read.pieces.len() {
            pieces if pieces > BLOCKS_MAX => Err(ContinuationError::TooMany { pieces }),
            _ => Ok(read),
        }
    }
}

impl PartialEq for Continuation {
    fn eq(&self, other: &Self) -> bool {
        (self.format, &self.model, &self.pieces) == (other.format, &other.model, &other.pieces)
    }
}

impl Eq for Continuation {}

impl PartialEq for Piece {
    /// By the bytes of its JSON: what differs in a space is not the same.
    fn eq(&self, other: &Self) -> bool {
        let raw = |piece: &Self| piece.raw.as_ref().map(|raw| raw.get().to_owned());
        (raw(self), self.text, &self.call) == (raw(other), other.text, &other.call)
    }
}

fn within_bounds(bytes: &[u8]) -> Result<(), ContinuationError> {
    match bytes.len() {
        bytes if bytes > CONTINUATION_BYTES_MAX => Err(ContinuationError::TooLarge { bytes }),
        _ => Ok(()),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}
