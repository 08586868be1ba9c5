//! A chain hash as people write it down: 64 hex digits.

use std::str::FromStr;

use crate::ChainHash;

/// A text that is not the hash of a journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a hash: expected the 64 hex digits of an `event_hash`")]
pub struct NotAChainHash(String);

impl FromStr for ChainHash {
    type Err = NotAChainHash;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || NotAChainHash(text.to_owned());
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self::from_bytes(bytes))
    }
}
