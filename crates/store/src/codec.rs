//! Stored batches, checked against their bounds and hashes.

use std::ops::ControlFlow;

use spinney_journal::{Batch, ChainHash, Entry, JournalFault, StoredEntry};
use spinney_kernel::primitives::limit::{BATCH_BYTES_MAX, PAGE_BYTES_MAX};
use spinney_kernel::primitives::{BlobHash, BlobRef, Seq, TreeId};

/// Decodes a stored batch and checks it against its hash.
fn decode(link: &Link, found: &DecodedBatch<'_>) -> Result<Entry, JournalFault> {
    let Link { tree, end, before } = *link;
    let DecodedBatch { after, hash, bytes } = *found;
    let damaged = |reason: String| Err(JournalFault::Damaged { tree, after: end.0, reason });
    if bytes.len() > BATCH_BYTES_MAX {
        return damaged(format!("a batch of {} bytes, the limit is {BATCH_BYTES_MAX}", bytes.len()));
    }
    let Ok(hash) = hash.try_into().map(ChainHash::from_bytes) else {
        return damaged(format!("a hash of {} bytes", hash.len()));
    };
    if before.then(after, bytes) != hash {
        return damaged(if end == after {
            "the bytes of the next batch do not match their hash".to_owned()
        } else {
            format!("the next batch begins after event {}", after.0)
        });
    }
    match Batch::decode(bytes) {
        Ok(batch) => Ok(Entry { after, batch, hash }),
        Err(error) => damaged(format!("the next batch cannot be read: {error}")),
    }
}

/// Checks the bytes of a blob against its reference.
pub(crate) fn check_blob(blob: &BlobRef, bytes: Vec<u8>) -> Result<Vec<u8>, JournalFault> {
    if bytes.len() as u64 == blob.bytes && BlobHash::digest(&bytes) == blob.hash {
        Ok(bytes)
    } else {
        Err(JournalFault::DamagedBlob { hash: blob.hash.to_string() })
    }
}

/// The expected next link of the chain.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub(crate) tree: TreeId,
    /// The last event before it.
    pub(crate) end: Seq,
    /// The hash before it.
    pub(crate) before: ChainHash,
}

pub(crate) struct DecodedBatch<'s> {
    /// The last event before it.
    pub(crate) after: Seq,
    /// The stored hash over it and everything before it; may be invalid.
    pub(crate) hash: &'s [u8],
    pub(crate) bytes: &'s [u8],
}

/// What a page keeps of each batch.
pub(crate) trait PageItem {
    fn new(entry: Entry, bytes: &[u8]) -> Self;
    /// Its last event.
    fn end(&self) -> Seq;
}

impl PageItem for Entry {
    fn new(entry: Entry, _bytes: &[u8]) -> Self {
        entry
    }

    fn end(&self) -> Seq {
        Self::end(self)
    }
}

impl PageItem for StoredEntry {
    fn new(entry: Entry, bytes: &[u8]) -> Self {
        Self { entry, bytes: bytes.to_vec() }
    }

    fn end(&self) -> Seq {
        self.entry.end()
    }
}

/// A page that is being read: consecutive batches, up to the limits.
pub(crate) struct Page<T> {
    link: Link,
    items: Vec<T>,
    bytes: usize,
}

impl<T: PageItem> Page<T> {
    pub(crate) fn new(link: Link) -> Self {
        Self { link, items: Vec::new(), bytes: 0 }
    }

    /// Adds a batch, or breaks if it does not fit. The first one always fits.
    pub(crate) fn take(&mut self, found: &DecodedBatch<'_>) -> Result<ControlFlow<()>, JournalFault> {
        self.bytes = self.bytes.saturating_add(found.bytes.len());
        if self.bytes > PAGE_BYTES_MAX && !self.items.is_empty() {
            return Ok(ControlFlow::Break(()));
        }
        let entry = decode(&self.link, found)?;
        (self.link.end, self.link.before) = (entry.end(), entry.hash);
        self.items.push(T::new(entry, found.bytes));
        Ok(ControlFlow::Continue(()))
    }

    /// The batches, without a first one that has no events after `seen`.
    pub(crate) fn after(mut self, seen: Seq) -> Vec<T> {
        if self.items.first().is_some_and(|item| item.end() <= seen) {
            self.items.remove(0);
        }
        self.items
    }
}
