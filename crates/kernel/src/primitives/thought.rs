//! A model's reasoning before an answer. People may read it; only the model that produced it gets it back, and no
//! other agent ever sees it.

use serde::{Deserialize, Serialize};

use crate::primitives::{BlobRef, ModelName, limit};

/// A model's reasoning before an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thought {
    /// The model that produced it. The kernel sets it to the model of the call.
    pub model: ModelName,
    /// Opaque state that the provider wants back unchanged with the next turn: signatures, encrypted reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<BlobRef>,
    /// Its reasoning as text, where the provider shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<BlobRef>,
    /// Upper bound on the continuation's tokens when it is sent back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Thought {
    /// Assigns it to `model` and cuts it to the journal's limits.
    #[must_use]
    pub(crate) fn for_model(&self, model: &ModelName) -> Self {
        Self { model: model.clone(), tokens: self.tokens.min(limit::BLOB_BYTES_MAX as u64), ..self.clone() }
    }

    pub fn blobs(&self) -> impl Iterator<Item = &BlobRef> {
        self.continuation.iter().chain(&self.reasoning)
    }
}
