//! A journal in memory: for tests, and for trees that need not outlive their process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_journal::{
    Append, Appended, Base, CatalogKind, CatalogRow, ChainHash, Claim, EncodedBatch, Entry, Epoch, Fact,
    Head, HeadCursor, HeadPage, Journal, JournalFault, Reading, Reservation, Shared, StoredEntry,
};
use spinney_kernel::primitives::{BlobRef, Seq, TreeId, limit};
use spinney_kernel::world::TreeState;

use crate::bound;
use crate::codec::{self, DecodedBatch, Link, Page, PageItem};
use crate::cursor;
use crate::waiting::Waiting;

#[derive(Default)]
pub struct MemoryJournal {
    shelf: Arc<Mutex<StoredState>>,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
struct StoredState {
    trees: BTreeMap<TreeId, Stored>,
    /// In the order of creation.
    order: BTreeMap<u64, TreeId>,
    blobs: BTreeMap<BlobName, CountedBlob>,
    /// A key without a value is reserved.
    catalog: BTreeMap<(CatalogKind, String), (TreeId, Option<String>)>,
}

struct Stored {
    /// Its position in that order.
    number: u64,
    head: Head,
    /// Of the last claim.
    epoch: Epoch,
    /// The hash before its first batch.
    before: ChainHash,
    batches: Vec<(Seq, ChainHash, EncodedBatch)>,
    blobs: BTreeSet<BlobName>,
    keys: BTreeSet<(CatalogKind, String)>,
}

type BlobName = [u8; 32];

/// A blob and the number of trees that use it.
struct CountedBlob {
    bytes: Vec<u8>,
    trees: usize,
}

impl MemoryJournal {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn shelf(&self) -> MutexGuard<'_, StoredState> {
        open(&self.shelf)
    }
}

impl Drop for MemoryJournal {
    fn drop(&mut self) {
        self.waiting.close();
    }
}

/// A poisoned lock is fine: it is held only for whole steps.
fn open(shelf: &Mutex<StoredState>) -> MutexGuard<'_, StoredState> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What comes before a tree's next batch.
struct Fork {
    base: Option<Base>,
    before: ChainHash,
    seed: TreeId,
}

impl StoredState {
    fn claim(&mut self, tree: TreeId) -> Result<Claim, JournalFault> {
        let stored = self.trees.get_mut(&tree).ok_or(JournalFault::UnknownTree { tree })?;
        stored.epoch = Epoch(stored.epoch.0 + 1);
        let catalog = &mut self.catalog;
        stored.keys.retain(|key| {
            let is_reserved = catalog.get(key) == Some(&(tree, None));
            if is_reserved {
                catalog.remove(key);
            }
            !is_reserved
        });
        Ok(Claim { tree, epoch: stored.epoch })
    }

    fn reserve(&mut self, claim: Claim, key: (CatalogKind, String)) -> Result<Reservation, JournalFault> {
        let Claim { tree, epoch } = claim;
        let stored = self.trees.get_mut(&tree).ok_or(JournalFault::UnknownTree { tree })?;
        if stored.epoch != epoch {
            return Err(JournalFault::Owned { tree });
        }
        if let Some((tree, _)) = self.catalog.get(&key) {
            return Ok(Reservation::Taken { tree: *tree });
        }
        stored.keys.insert(key.clone());
        self.catalog.insert(key, (tree, None));
        Ok(Reservation::Reserved)
    }

    fn free(&mut self, claim: Claim, key: &(CatalogKind, String)) {
        let Some(stored) = self.trees.get_mut(&claim.tree).filter(|stored| stored.epoch == claim.epoch)
        else {
            return;
        };
        if self.catalog.get(key) == Some(&(claim.tree, None)) {
            stored.keys.remove(key);
            self.catalog.remove(key);
        }
    }

    fn read<T: PageItem>(
        &self,
        tree: TreeId,
        after: Seq,
        batches_max: usize,
    ) -> Result<Vec<T>, JournalFault> {
        let (stored, end) = self.owner(tree, after)?;
        let from = stored.batches.partition_point(|(seq, ..)| *seq <= after).saturating_sub(1);
        let begin = stored.batches.get(from).map_or(after, |(seq, ..)| *seq);
        let before = match from.checked_sub(1).and_then(|last| stored.batches.get(last)) {
            Some((_, hash, _)) => *hash,
            None => stored.before,
        };
        let mut page = Page::new(Link { tree, end: begin, before });
        let own = stored.batches.iter().skip(from).take_while(|(after, ..)| *after < end);
        for (after, hash, batch) in own.take(batches_max) {
            let found = DecodedBatch { after: *after, hash: hash.bytes(), bytes: batch.bytes() };
            if page.take(&found)?.is_break() {
                break;
            }
        }
        Ok(page.after(after))
    }

    fn head_page(
        &self,
        states: &[TreeState],
        after: &HeadCursor,
        heads_max: usize,
    ) -> Result<HeadPage, JournalFault> {
        let from = cursor::number(after)?;
        let asked = |head: &Head| states.is_empty() || states.contains(&head.state);
        let trees =
            self.order.range(from..).filter_map(|(number, tree)| Some((number, self.trees.get(tree)?)));
        let mut found = trees.filter(|(_, stored)| asked(&stored.head));
        let heads = found.by_ref().take(heads_max).map(|(_, stored)| stored.head.clone()).collect();
        Ok(HeadPage { heads, next: found.next().map(|(number, _)| cursor::to(*number)) })
    }

    fn facts(&self, kind: CatalogKind, prefix: &str) -> Vec<Fact> {
        let from = self.catalog.range((kind, prefix.to_owned())..);
        let of_prefix = from.take_while(|((other, key), _)| *other == kind && key.starts_with(prefix));
        let fact = |((_, key), (tree, value)): (&(CatalogKind, String), &(TreeId, Option<String>))| {
            Some(Fact { key: key.clone(), tree: *tree, value: value.clone()? })
        };
        of_prefix.filter_map(fact).collect()
    }

    fn append(&mut self, append: Append) -> Result<ChainHash, JournalFault> {
        let (now, end) = (append.batch.now(), append.end());
        let Append { tree, epoch, after, base, seed, batch, blobs, catalog, state, .. } = append;
        let append_begins = base.is_some() || seed.is_some();
        if self.trees.get(&tree).is_some_and(|stored| stored.epoch != epoch) {
            return Err(JournalFault::Owned { tree });
        }
        let (found, fork) = match (self.trees.get(&tree), base) {
            (Some(stored), _) => {
                let Head { seq, hash: before, base, seed, .. } = stored.head;
                (seq, Fork { base, before, seed })
            }
            (None, Some(origin)) => (after, self.fork(origin, after)?),
            (None, None) => {
                let seed = seed.unwrap_or(tree);
                (Seq(0), Fork { base: None, before: ChainHash::start(seed), seed })
            }
        };
        let is_misplaced = append_begins && self.trees.contains_key(&tree);
        let Fork { base: prefix, before, seed } = fork;
        if found != after || is_misplaced {
            return Err(JournalFault::Stale { tree, expected: after.0, found: found.0 });
        }
        if epoch != Epoch::FIRST && !self.trees.contains_key(&tree) {
            return Err(JournalFault::UnknownTree { tree });
        }
        self.check_keys(tree, &catalog)?;
        let hash = before.then(after, batch.bytes());
        let stored = self.trees.entry(tree).or_insert_with(|| {
            let number = self.order.last_key_value().map_or(0, |(last, _)| last + 1);
            self.order.insert(number, tree);
            let head = Head { tree, seq: after, hash, state, started: now, changed: now, base: prefix, seed };
            let (batches, blobs, keys) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
            Stored { number, head, epoch, before, batches, blobs, keys }
        });
        stored.batches.push((after, hash, batch));
        (stored.head.seq, stored.head.hash) = (end, hash);
        (stored.head.state, stored.head.changed) = (state, now);
        for bytes in blobs.iter() {
            let name = *blake3::hash(bytes).as_bytes();
            if stored.blobs.insert(name) {
                let kept =
                    self.blobs.entry(name).or_insert_with(|| CountedBlob { bytes: bytes.clone(), trees: 0 });
                kept.trees += 1;
            }
        }
        self.catalog(tree, catalog);
        Ok(hash)
    }

    /// The base of a branch whose first batch comes after `at`.
    fn fork(&self, origin: TreeId, at: Seq) -> Result<Fork, JournalFault> {
        let unknown = JournalFault::UnknownTree { tree: origin };
        let mut stored = self.trees.get(&origin).ok_or(unknown.clone())?;
        // Earlier batches are read from the tree that stores them.
        while let Some(base) = stored.head.base.filter(|base| at <= base.at) {
            stored = self.trees.get(&base.tree).ok_or(unknown.clone())?;
        }
        let (mut depth, mut above) = (1, stored.head.base);
        while let Some(base) = above {
            depth += 1;
            above = self.trees.get(&base.tree).and_then(|stored| stored.head.base);
        }
        bound::at_most("a lineage in trees", depth, limit::LINEAGE_MAX)?;
        let next = stored.batches.iter().position(|(after, ..)| *after == at);
        let last = next.and_then(|next| stored.batches.get(next.checked_sub(1)?));
        let before = match last {
            Some((_, hash, _)) => *hash,
            None if stored.head.seq == at => stored.head.hash,
            None => return Err(JournalFault::NotABoundary { tree: origin, at: at.0 }),
        };
        let base = Some(Base { tree: stored.head.tree, at });
        Ok(Fork { base, before, seed: stored.head.seed })
    }

    /// The tree that stores the event after `after`, and where its part ends.
    fn owner(&self, tree: TreeId, after: Seq) -> Result<(&Stored, Seq), JournalFault> {
        let mut stored = self.trees.get(&tree).ok_or(JournalFault::UnknownTree { tree })?;
        let mut end = Seq(u64::MAX);
        while let Some(base) = stored.head.base.filter(|base| after < base.at) {
            end = end.min(base.at);
            stored = self.trees.get(&base.tree).ok_or(JournalFault::UnknownTree { tree: base.tree })?;
        }
        Ok((stored, end))
    }

    /// Hands the batches that branches read to the one that reads most of them.
    fn hand_over(&mut self, removed: &mut Stored, users: &[TreeId]) {
        let at = |tree: &TreeId| self.trees.get(tree).and_then(|stored| stored.head.base).map(|base| base.at);
        let Some(heir) = users.iter().copied().max_by_key(|tree| at(tree)) else { return };
        let Some(end) = at(&heir) else { return };
        for user in users {
            let Some(base) = self.trees.get_mut(user).and_then(|stored| stored.head.base.as_mut()) else {
                continue;
            };
            base.tree = heir;
        }
        let Some(stored) = self.trees.get_mut(&heir) else { return };
        (stored.head.base, stored.before) = (removed.head.base, removed.before);
        let shared = removed.batches.partition_point(|(after, ..)| *after < end);
        stored.batches.splice(0..0, removed.batches.drain(..shared));
        for name in &removed.blobs {
            if stored.blobs.insert(*name)
                && let Some(kept) = self.blobs.get_mut(name)
            {
                kept.trees += 1;
            }
        }
    }

    /// Refuses rows whose keys belong to another tree.
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
                    self.catalog.insert(key, (tree, Some(value)));
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
        let is_row =
            |key: &&(CatalogKind, String)| self.catalog.get(*key).is_some_and(|(_, value)| value.is_some());
        let old: Vec<CatalogRow> = stored
            .keys
            .iter()
            .filter(is_row)
            .map(|(kind, key)| CatalogRow { kind: *kind, key: key.clone(), value: None })
            .collect();
        self.catalog(tree, old);
        self.catalog(tree, rows);
        Ok(())
    }

    fn remove(&mut self, tree: TreeId, shared: Shared) -> Result<(), JournalFault> {
        let uses = |head: &Head| head.base.is_some_and(|base| base.tree == tree);
        let heads = self.order.values().filter_map(|tree| self.trees.get(tree)).map(|stored| &stored.head);
        let by: Vec<TreeId> = heads.filter(|head| uses(head)).map(|head| head.tree).collect();
        if shared == Shared::Refuse && !by.is_empty() {
            return Err(JournalFault::InUse { tree, by });
        }
        let mut removed = self.trees.remove(&tree).ok_or(JournalFault::UnknownTree { tree })?;
        self.hand_over(&mut removed, &by);
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
    fn claim(&self, tree: TreeId) -> Reading<Claim> {
        answer(self.shelf().claim(tree))
    }

    /// No other process can claim it, and this one may at any time.
    fn release(&self, _claim: Claim) -> Reading<()> {
        answer(Ok(()))
    }

    fn append(&self, append: Append, done: Appended) {
        let tree = append.tree;
        let appended = bound::check(&append).and_then(|()| self.shelf().append(append));
        if appended.is_ok() {
            self.waiting.wake(tree);
        }
        done(appended);
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>> {
        answer(self.shelf().read(tree, after, batches_max))
    }

    fn read_stored(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<StoredEntry>> {
        answer(self.shelf().read(tree, after, batches_max))
    }

    fn head(&self, tree: TreeId) -> Reading<Option<Head>> {
        answer(Ok(self.shelf().trees.get(&tree).map(|stored| stored.head.clone())))
    }

    fn changed(&self, tree: TreeId, after: Seq) -> Reading<Head> {
        let shelf = Arc::downgrade(&self.shelf);
        self.waiting.until(tree, after, move || {
            let head = |shelf: Arc<Mutex<StoredState>>| {
                open(&shelf).trees.get(&tree).map(|stored| stored.head.clone())
            };
            answer(shelf.upgrade().map(head).ok_or(JournalFault::Closed))
        })
    }

    fn head_page(&self, states: &[TreeState], after: HeadCursor, heads_max: usize) -> Reading<HeadPage> {
        answer(self.shelf().head_page(states, &after, heads_max.min(limit::HEADS_MAX)))
    }

    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Reading<Vec<Fact>> {
        answer(Ok(self.shelf().facts(kind, prefix)))
    }

    fn reserve(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<Reservation> {
        let checked = bound::check_key(key);
        answer(checked.and_then(|()| self.shelf().reserve(claim, (kind, key.to_owned()))))
    }

    fn free(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<()> {
        self.shelf().free(claim, &(kind, key.to_owned()));
        answer(Ok(()))
    }

    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Reading<()> {
        answer(bound::check_rows(&rows).and_then(|()| self.shelf().replace(tree, at, rows)))
    }

    fn blob(&self, blob: &BlobRef) -> Reading<Option<Vec<u8>>> {
        let bytes = self.shelf().bytes(blob);
        answer(bytes.map(|bytes| codec::check_blob(blob, bytes)).transpose())
    }

    fn remove(&self, tree: TreeId, shared: Shared) -> Reading<()> {
        let removed = self.shelf().remove(tree, shared);
        self.waiting.wake(tree);
        answer(removed)
    }
}

fn answer<T: Send + 'static>(answer: Result<T, JournalFault>) -> Reading<T> {
    Box::pin(std::future::ready(answer))
}

#[cfg(test)]
mod tests {
    use spinney_journal::Blocking;
    use spinney_kernel::primitives::BlobHash;

    use super::*;

    #[test]
    fn a_blob_that_is_not_what_its_hash_says_is_a_fault() {
        let journal = MemoryJournal::new();
        let blob = BlobRef { hash: BlobHash::digest(b"right"), bytes: 5 };
        let name = *blake3::hash(b"right").as_bytes();
        journal.shelf().blobs.insert(name, CountedBlob { bytes: b"wrong".to_vec(), trees: 1 });
        assert_eq!(
            journal.blob(&blob).wait(),
            Err(JournalFault::DamagedBlob { hash: blob.hash.to_string() })
        );
    }
}
