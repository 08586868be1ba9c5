//! How a batch is written: JSON, with texts that stand in input and event written once.

use spinney_kernel::Batch;
use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::journal::{ChainHash, Entry, JournalFault};

/// The largest batch that is read back: far above what the kernel's bounds allow, and far below what hurts.
const BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A batch as bytes.
pub(crate) fn encode(mut batch: Batch) -> Result<Vec<u8>, JournalFault> {
    batch.fold();
    serde_json::to_vec(&batch).map_err(|error| JournalFault::Failed { reason: error.to_string() })
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

/// Where in the chain a stored batch is expected.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub(crate) tree: TreeId,
    /// The last event before it.
    pub(crate) after: Seq,
    /// The hash before it.
    pub(crate) before: ChainHash,
}
