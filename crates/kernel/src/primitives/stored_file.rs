//! Files that agents write. An event names them; the bytes are blobs of its batch, so the folder on disk is only a copy.

use serde::{Deserialize, Serialize};

use crate::primitives::{BlobHash, BlobRef, OutputPath};

/// A file of an agent, by reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFile {
    /// Below the agent's `outputs/`.
    pub path: OutputPath,
    /// All of its bytes.
    pub blob: BlobRef,
}

/// A file of an agent with its bytes, before an event names it.
#[derive(Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// Below the agent's `outputs/`.
    pub path: OutputPath,
    /// All of its bytes.
    pub bytes: Vec<u8>,
}

impl WrittenFile {
    /// The same by reference.
    #[must_use]
    pub fn stored(&self) -> StoredFile {
        let blob = BlobRef { hash: BlobHash::digest(&self.bytes), bytes: self.bytes.len() as u64 };
        StoredFile { path: self.path.clone(), blob }
    }
}

impl std::fmt::Debug for WrittenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WrittenFile({}, {} bytes)", self.path, self.bytes.len())
    }
}
