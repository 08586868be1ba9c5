//! The name of a commit: a hash in hexadecimal digits, of SHA-1 or SHA-256.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Digits of the two kinds of hashes.
const DIGITS: [usize; 2] = [40, 64];
/// Digits that people see.
const SHORT_DIGITS: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitId(String);

/// A text that is not a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the hash of a commit")]
pub struct NotACommitId;

impl CommitId {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its first digits, for people.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..SHORT_DIGITS]
    }

    /// Whether it is of the same kind of hash.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
    }

    /// From what git prints: the hash and a line break.
    pub(super) fn from_output(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok()?.trim_ascii_end().parse().ok()
    }
}

impl FromStr for CommitId {
    type Err = NotACommitId;

    fn from_str(text: &str) -> Result<Self, NotACommitId> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_hash = DIGITS.contains(&text.len()) && text.bytes().all(is_digit);
        if is_hash { Ok(Self(text.to_owned())) } else { Err(NotACommitId) }
    }
}

impl TryFrom<String> for CommitId {
    type Error = NotACommitId;

    fn try_from(text: String) -> Result<Self, NotACommitId> {
        text.parse()
    }
}

impl From<CommitId> for String {
    fn from(id: CommitId) -> Self {
        id.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
