//! Digests of texts, to compare them without keeping them.

use crate::primitives::Body;

pub type AnswerDigest = [u8; 16];

/// Digest of a whole answer, ignoring surrounding white space.
pub(crate) fn answer_digest(body: &Body) -> AnswerDigest {
    let whole = body.rest().map_or(body.text.trim(), |rest| rest.hash.as_str());
    digest(whole)
}

/// Digest of a goal or an answer. Case matters; surrounding white space does not.
pub(crate) fn digest(text: &str) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&blake3::hash(text.trim().as_bytes()).as_bytes()[..16]);
    digest
}
