//! A journal whose disk is full from a moment on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spinney::{Journal, MemoryJournal};
use spinney_journal::{
    Append, Appended, CatalogKind, CatalogRow, Claim, Entry, Fact, Head, HeadCursor, HeadPage, JournalFault,
    Reading, Reservation, Shared, StoredEntry,
};
use spinney_kernel::primitives::{BlobRef, Seq, TreeId};
use spinney_kernel::world::TreeState;

#[derive(Default)]
pub(crate) struct FailingJournal {
    inner: MemoryJournal,
    is_full: AtomicBool,
}

impl FailingJournal {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn fill(&self) {
        self.is_full.store(true, Ordering::SeqCst);
    }
}

impl Journal for FailingJournal {
    fn claim(&self, tree: TreeId) -> Reading<Claim> {
        self.inner.claim(tree)
    }

    fn release(&self, claim: Claim) -> Reading<()> {
        self.inner.release(claim)
    }

    fn append(&self, append: Append, done: Appended) {
        if self.is_full.load(Ordering::SeqCst) {
            done(Err(JournalFault::Full));
        } else {
            self.inner.append(append, done);
        }
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>> {
        self.inner.read(tree, after, batches_max)
    }

    fn read_stored(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<StoredEntry>> {
        self.inner.read_stored(tree, after, batches_max)
    }

    fn head(&self, tree: TreeId) -> Reading<Option<Head>> {
        self.inner.head(tree)
    }

    fn changed(&self, tree: TreeId, after: Seq) -> Reading<Head> {
        self.inner.changed(tree, after)
    }

    fn head_page(&self, states: &[TreeState], after: HeadCursor, heads_max: usize) -> Reading<HeadPage> {
        self.inner.head_page(states, after, heads_max)
    }

    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Reading<Vec<Fact>> {
        self.inner.catalog(kind, prefix)
    }

    fn reserve(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<Reservation> {
        self.inner.reserve(claim, kind, key)
    }

    fn free(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<()> {
        self.inner.free(claim, kind, key)
    }

    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Reading<()> {
        self.inner.replace_catalog(tree, at, rows)
    }

    fn blob(&self, blob: &BlobRef) -> Reading<Option<Vec<u8>>> {
        self.inner.blob(blob)
    }

    fn remove(&self, tree: TreeId, shared: Shared) -> Reading<()> {
        self.inner.remove(tree, shared)
    }
}
