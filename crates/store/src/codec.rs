//! How a batch is written: JSON, with texts that stand in input and event written once.

use spinney_kernel::Batch;
use spinney_kernel::body::BlobRef;
use spinney_kernel::id::{BlobHash, Seq, TreeId};
use spinney_kernel::limit::BATCH_BYTES_MAX;
use spinney_kernel::port::journal::{ChainHash, Entry, JournalFault};

use crate::bound;

/// A batch as bytes.
pub(crate) fn encode(mut batch: Batch) -> Result<Vec<u8>, JournalFault> {
    batch.fold();
    let failed = |error: serde_json::Error| JournalFault::Failed { reason: error.to_string() };
    let bytes = serde_json::to_vec(&batch).map_err(failed)?;
    bound::at_most("a batch in bytes", bytes.len(), BATCH_BYTES_MAX)?;
    Ok(bytes)
}

/// Bytes as a batch, checked against the hash over everything before and them.
pub(crate) fn decode(link: &Link, stored: &[u8], hash: ChainHash) -> Result<Entry, JournalFault> {
    let Link { tree, after, before } = *link;
    let damaged = |reason: String| JournalFault::Damaged { tree, after: after.0, reason };
    if stored.len() > BATCH_BYTES_MAX {
        return Err(damaged(format!("a batch of {} bytes, the limit is {BATCH_BYTES_MAX}", stored.len())));
    }
    if before.then(after, stored) != hash {
        return Err(damaged("its bytes do not match their hash".to_owned()));
    }
    let mut batch: Batch = serde_json::from_slice(stored).map_err(|error| damaged(error.to_string()))?;
    batch.unfold();
    Ok(Entry { after, batch, hash })
}

/// The bytes of a blob, if they are what its reference says.
pub(crate) fn check_blob(blob: &BlobRef, bytes: Vec<u8>) -> Result<Vec<u8>, JournalFault> {
    if bytes.len() as u64 == blob.bytes && BlobHash::of(&bytes) == blob.hash {
        Ok(bytes)
    } else {
        Err(JournalFault::DamagedBlob { hash: blob.hash.to_string() })
    }
}

/// Where in the chain a stored batch is expected.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub(crate) tree: TreeId,
    /// The last event before it.
    pub(crate) after: Seq,
    /// The hash before it.
    pub(crate) before: ChainHash,
}
