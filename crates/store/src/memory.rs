//! A journal in memory: for tests, and for trees that need not outlive their process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spinney_kernel::body::BlobRef;
use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::journal::{Append, Appended, ChainHash, Entry, Head, Journal, JournalFault};

use crate::codec::{self, Link};

/// A journal in memory.
#[derive(Default)]
pub struct MemoryJournal(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    trees: BTreeMap<TreeId, Stored>,
    /// Trees in the order they came.
    order: Vec<TreeId>,
    blobs: BTreeMap<String, Vec<u8>>,
}

struct Stored {
    head: Head,
    batches: Vec<(Seq, ChainHash, Vec<u8>)>,
    blobs: Vec<String>,
}

impl MemoryJournal {
    /// An empty journal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What stands there cannot be half written: the lock is held only for whole steps.
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn append(&mut self, append: Append) -> Result<ChainHash, JournalFault> {
        let Append { tree, after, batch, blobs, state, .. } = append;
        let (found, before) = match self.trees.get(&tree) {
            Some(stored) => (stored.head.seq, stored.head.hash),
            None => (Seq(0), ChainHash::start(tree)),
        };
        if found != after {
            return Err(JournalFault::Stale { tree, expected: after.0, found: found.0 });
        }
        let (now, events) = (batch.input.now, batch.events.len() as u64);
        let bytes = codec::encode(batch)?;
        let hash = before.then(after, &bytes);
        let stored = self.trees.entry(tree).or_insert_with(|| {
            self.order.push(tree);
            let head = Head { tree, seq: after, hash, state: String::new(), started: now, changed: now };
            Stored { head, batches: Vec::new(), blobs: Vec::new() }
        });
        stored.batches.push((after, hash, bytes));
        (stored.head.seq, stored.head.hash) = (Seq(after.0 + events), hash);
        (stored.head.changed, stored.head.state) = (now, state.to_owned());
        for bytes in blobs {
            let name = blake3::hash(&bytes).to_hex().to_string();
            stored.blobs.push(name.clone());
            self.blobs.insert(name, bytes);
        }
        Ok(hash)
    }
}

impl Journal for MemoryJournal {
    fn append(&self, append: Append, done: Appended) {
        let appended = self.shelf().append(append);
        done(appended);
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Result<Vec<Entry>, JournalFault> {
        let shelf = self.shelf();
        let stored = shelf.trees.get(&tree).ok_or(JournalFault::UnknownTree { tree })?;
        let from = stored.batches.partition_point(|(seq, ..)| *seq < after);
        let mut before = match from.checked_sub(1).and_then(|last| stored.batches.get(last)) {
            Some((_, hash, _)) => *hash,
            None => ChainHash::start(tree),
        };
        let mut entries = Vec::new();
        for (after, hash, bytes) in stored.batches.iter().skip(from).take(batches_max) {
            entries.push(codec::decode(&Link { tree, after: *after, before }, bytes, *hash)?);
            before = *hash;
        }
        Ok(entries)
    }

    fn head(&self, tree: TreeId) -> Result<Option<Head>, JournalFault> {
        Ok(self.shelf().trees.get(&tree).map(|stored| stored.head.clone()))
    }

    fn heads(&self) -> Result<Vec<Head>, JournalFault> {
        let shelf = self.shelf();
        Ok(shelf
            .order
            .iter()
            .filter_map(|tree| shelf.trees.get(tree))
            .map(|stored| stored.head.clone())
            .collect())
    }

    fn blob(&self, blob: &BlobRef) -> Result<Option<Vec<u8>>, JournalFault> {
        Ok(self.shelf().blobs.get(blob.hash.as_str()).cloned())
    }

    fn remove(&self, tree: TreeId) -> Result<(), JournalFault> {
        let mut shelf = self.shelf();
        let removed = shelf.trees.remove(&tree).ok_or(JournalFault::UnknownTree { tree })?;
        shelf.order.retain(|other| *other != tree);
        for name in removed.blobs {
            if !shelf.trees.values().any(|stored| stored.blobs.contains(&name)) {
                shelf.blobs.remove(&name);
            }
        }
        Ok(())
    }
}
