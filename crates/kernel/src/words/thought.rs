//! What a model thought before it answered. People may read it; of all models only the one that thought it gets it back,
//! and no other agent ever does.

use serde::{Deserialize, Serialize};

use crate::words::{BlobRef, ModelName, limit};

/// What a model thought before it answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thought {
    /// Whose it is. The kernel sets it to the model of the call.
    pub model: ModelName,
    /// What its provider wants back unchanged with the next turn: signatures, encrypted reasoning. Nobody else can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<BlobRef>,
    /// Its reasoning as text, where the provider shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<BlobRef>,
    /// The most tokens that the continuation can have when it is sent back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Thought {
    /// This as the thought of a model, within what a journal takes.
    #[must_use]
    pub(crate) fn of(&self, model: &ModelName) -> Self {
        Self { model: model.clone(), tokens: self.tokens.min(limit::BLOB_BYTES_MAX as u64), ..self.clone() }
    }

    /// The blobs that it names.
    pub fn blobs(&self) -> impl Iterator<Item = &BlobRef> {
        self.continuation.iter().chain(&self.reasoning)
    }
}
