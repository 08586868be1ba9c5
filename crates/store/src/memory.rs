//! A journal in memory: for tests, and for trees that need not outlive their process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spinney_kernel::body::BlobRef;
use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::catalog::{CatalogKind, CatalogRow, Fact};
use spinney_kernel::port::journal::{Append, Appended, ChainHash, Entry, Head, Journal, JournalFault};
use spinney_kernel::time::Time;

use crate::bound;
use crate::codec::{self, Found, Link, Page};

/// A journal in memory.
#[derive(Default)]
pub struct MemoryJournal(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    trees: BTreeMap<TreeId, Stored>,
    /// Trees in the order they came.
    order: BTreeMap<u64, TreeId>,
    blobs: BTreeMap<BlobName, Kept>,
    catalog: BTreeMap<(CatalogKind, String), (TreeId, String)>,
}

struct Stored {
    /// The how-manieth tree it is.
    number: u64,
    head: Head,
    batches: Vec<(Seq, ChainHash, Vec<u8>)>,
    blobs: BTreeSet<BlobName>,
    keys: BTreeSet<(CatalogKind, String)>,
}

/// The hash of a blob's bytes.
type BlobName = [u8; 32];

/// A blob and how many trees use it.
struct Kept {
    bytes: Vec<u8>,
    trees: usize,
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

/// A batch on its way, encoded before anybody else has to wait for it.
struct Encoded {
    tree: TreeId,
    after: Seq,
    events: u64,
    now: Time,
    bytes: Vec<u8>,
    blobs: Vec<Vec<u8>>,
    catalog: Vec<CatalogRow>,
    state: &'static str,
}

impl Encoded {
    fn new(append: Append) -> Result<Self, JournalFault> {
        bound::check(&append)?;
        let Append { tree, after, batch, blobs, catalog, state, .. } = append;
        let (now, events) = (batch.input.now, batch.events.len() as u64);
        let bytes = codec::encode(batch)?;
        Ok(Self { tree, after, events, now, bytes, blobs, catalog, state })
    }
}

impl Shelf {
    fn append(&mut self, encoded: Encoded) -> Result<ChainHash, JournalFault> {
        let Encoded { tree, after, events, now, bytes, blobs, catalog, state } = encoded;
        let (found, before) = match self.trees.get(&tree) {
            Some(stored) => (stored.head.seq, stored.head.hash),
            None => (Seq(0), ChainHash::start(tree)),
        };
        if found != after {
            return Err(JournalFault::Stale { tree, expected: after.0, found: found.0 });
        }
        self.check_keys(tree, &catalog)?;
        let hash = before.then(after, &bytes);
        let stored = self.trees.entry(tree).or_insert_with(|| {
            let number = self.order.last_key_value().map_or(0, |(last, _)| last + 1);
            self.order.insert(number, tree);
            let head = Head { tree, seq: after, hash, state: String::new(), started: now, changed: now };
            Stored { number, head, batches: Vec::new(), blobs: BTreeSet::new(), keys: BTreeSet::new() }
        });
        stored.batches.push((after, hash, bytes));
        (stored.head.seq, stored.head.hash) = (Seq(after.0 + events), hash);
        stored.head.changed = now;
        if stored.head.state != state {
            state.clone_into(&mut stored.head.state);
        }
        for bytes in blobs {
            let name = *blake3::hash(&bytes).as_bytes();
            if stored.blobs.insert(name) {
                self.blobs.entry(name).or_insert(Kept { bytes, trees: 0 }).trees += 1;
            }
        }
        self.catalog(tree, catalog);
        Ok(hash)
    }

    /// Refuses rows whose keys are another tree's.
    fn check_keys(&self, tree: TreeId, rows: &[CatalogRow]) -> Result<(), JournalFault> {
        for CatalogRow { kind, key, .. } in rows {
            match self.catalog.get(&(*kind, key.clone())) {
                Some((owner, _)) if *owner != tree => {
                    return Err(JournalFault::KeyTaken { kind: *kind, key: key.clone(), tree: *owner });
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    fn catalog(&mut self, tree: TreeId, rows: Vec<CatalogRow>) {
        let Some(stored) = self.trees.get_mut(&tree) else { return };
        for CatalogRow { kind, key, value } in rows {
            let key = (kind, key);
            match value {
                Some(value) => {
                    stored.keys.insert(key.clone());
                    self.catalog.insert(key, (tree, value));
                }
                None => {
                    stored.keys.remove(&key);
                    self.catalog.remove(&key);
                }
            }
        }
    }

    fn bytes(&self, blob: &BlobRef) -> Option<Vec<u8>> {
        let name = blake3::Hash::from_hex(blob.hash.as_str()).ok()?;
        self.blobs.get(name.as_bytes()).map(|kept| kept.bytes.clone())
    }

    fn replace(&mut self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Result<(), JournalFault> {
        let stored = self.trees.get(&tree).ok_or(JournalFault::UnknownTree { tree })?;
        if stored.head.seq != at {
            return Err(JournalFault::Stale { tree, expected: at.0, found: stored.head.seq.0 });
        }
        self.check_keys(tree, &rows)?;
        let old: Vec<CatalogRow> = stored
            .keys
            .iter()
            .map(|(kind, key)| CatalogRow { kind: *kind, key: key.clone(), value: None })
            .collect();
        self.catalog(tree, old);
        self.catalog(tree, rows);
        Ok(())
    }

    fn remove(&mut self, tree: TreeId) -> Result<(), JournalFault> {
        let removed = self.trees.remove(&tree).ok_or(JournalFault::UnknownTree { tree })?;
        self.order.remove(&removed.number);
        for name in removed.blobs {
            let Some(kept) = self.blobs.get_mut(&name) else { continue };
            kept.trees -= 1;
            if kept.trees == 0 {
                self.blobs.remove(&name);
            }
        }
        for key in removed.keys {
            self.catalog.remove(&key);
        }
        Ok(())
    }
}

impl Journal for MemoryJournal {
    fn append(&self, append: Append, done: Appended) {
        let appended = Encoded::new(append).and_then(|encoded| self.shelf().append(encoded));
        done(appended);
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Result<Vec<Entry>, JournalFault> {
        let shelf = self.shelf();
        let stored = shelf.trees.get(&tree).ok_or(JournalFault::UnknownTree { tree })?;
        let from = stored.batches.partition_point(|(seq, ..)| *seq <= after).saturating_sub(1);
        let begin = stored.batches.get(from).map_or(after, |(seq, ..)| *seq);
        let before = match from.checked_sub(1).and_then(|last| stored.batches.get(last)) {
            Some((_, hash, _)) => *hash,
            None => ChainHash::start(tree),
        };
        let mut page = Page::new(Link { tree, end: begin, before });
        for (after, hash, bytes) in stored.batches.iter().skip(from).take(batches_max) {
            let found = Found { after: *after, hash: hash.bytes(), bytes };
            if page.take(&found)?.is_break() {
                break;
            }
        }
        Ok(page.after(after))
    }

    fn head(&self, tree: TreeId) -> Result<Option<Head>, JournalFault> {
        Ok(self.shelf().trees.get(&tree).map(|stored| stored.head.clone()))
    }

    fn heads(&self, states: &[&str]) -> Result<Vec<Head>, JournalFault> {
        let shelf = self.shelf();
        let asked = |head: &&Head| states.is_empty() || states.contains(&head.state.as_str());
        let trees = shelf.order.values().filter_map(|tree| shelf.trees.get(tree));
        Ok(trees.map(|stored| &stored.head).filter(asked).cloned().collect())
    }

    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Result<Vec<Fact>, JournalFault> {
        let shelf = self.shelf();
        let from = shelf.catalog.range((kind, prefix.to_owned())..);
        let of_prefix = from.take_while(|((other, key), _)| *other == kind && key.starts_with(prefix));
        let fact = |((_, key), (tree, value)): (&(CatalogKind, String), &(TreeId, String))| Fact {
            key: key.clone(),
            tree: *tree,
            value: value.clone(),
        };
        Ok(of_prefix.map(fact).collect())
    }

    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Result<(), JournalFault> {
        bound::check_rows(&rows)?;
        self.shelf().replace(tree, at, rows)
    }

    fn blob(&self, blob: &BlobRef) -> Result<Option<Vec<u8>>, JournalFault> {
        let bytes = self.shelf().bytes(blob);
        bytes.map(|bytes| codec::check_blob(blob, bytes)).transpose()
    }

    fn remove(&self, tree: TreeId) -> Result<(), JournalFault> {
        self.shelf().remove(tree)
    }
}

#[cfg(test)]
mod tests {
    use spinney_kernel::id::BlobHash;

    use super::*;

    /// Memory can be damaged too.
    #[test]
    fn a_blob_that_is_not_what_its_hash_says_is_a_fault() {
        let journal = MemoryJournal::new();
        let blob = BlobRef { hash: BlobHash::of(b"right"), bytes: 5 };
        let name = *blake3::hash(b"right").as_bytes();
        journal.shelf().blobs.insert(name, Kept { bytes: b"wrong".to_vec(), trees: 1 });
        assert_eq!(journal.blob(&blob), Err(JournalFault::DamagedBlob { hash: blob.hash.to_string() }));
    }
}
