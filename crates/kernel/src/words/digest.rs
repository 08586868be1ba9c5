//! Digests of texts: two that are equal say the same.

use crate::words::Body;

/// A digest of an answer, to tell whether two are the same.
pub type AnswerDigest = [u8; 16];

/// A digest of the whole of an answer; white space around it does not count.
pub(crate) fn answer_digest(body: &Body) -> AnswerDigest {
    let whole = body.rest().map_or(body.text.trim(), |rest| rest.hash.as_str());
    digest(whole)
}

/// A digest of a goal or an answer; spelling counts, white space around it does not.
pub(crate) fn digest(text: &str) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&blake3::hash(text.trim().as_bytes()).as_bytes()[..16]);
    digest
}
