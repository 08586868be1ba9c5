//! Bytes replaced at their place. Everything between the places stays as it is.

use std::fmt::Display;
use std::ops::Range;

use bytes::Bytes;

/// One replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Splice {
    at: Range<usize>,
    text: String,
}

impl Splice {
    pub(super) fn new(at: Range<usize>, text: impl Into<String>) -> Self {
        Self { at, text: text.into() }
    }

    /// A field as the first one of an object that has others. `inside` is the place behind its brace.
    pub(super) fn field(inside: usize, name: &str, value: impl Display) -> Self {
        Self { at: inside..inside, text: format!("\"{name}\":{value},") }
    }
}

/// The body with all replacements, whose places do not overlap. Without one it is the same body, not a copy.
pub(super) fn splice(body: &Bytes, mut splices: Vec<Splice>) -> Bytes {
    if splices.is_empty() {
        return body.clone();
    }
    splices.sort_by_key(|splice| splice.at.start);
    let more: usize = splices.iter().map(|splice| splice.text.len()).sum();
    let mut changed = Vec::with_capacity(body.len() + more);
    let mut from = 0;
    for splice in splices {
        changed.extend_from_slice(&body[from..splice.at.start]);
        changed.extend_from_slice(splice.text.as_bytes());
        from = splice.at.end;
    }
    changed.extend_from_slice(&body[from..]);
    Bytes::from(changed)
}
