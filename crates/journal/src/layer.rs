//! Journals over other journals.

use spinney_kernel::primitives::{BlobRef, Seq, TreeId};
use spinney_kernel::world::TreeState;

use crate::{
    Append, Appended, CatalogKind, CatalogRow, Claim, Entry, Fact, Head, HeadCursor, HeadPage, Journal,
    Reading, Reservation, Shared, StoredEntry,
};

/// A journal that changes, counts or delays what goes through it to another one. Every method that it does not write
/// itself is the other journal's; [`Journal`] says what each must do.
#[expect(missing_docs, reason = "they are the methods of `Journal`")]
pub trait JournalLayer: Send + Sync {
    /// The journal below.
    fn inner(&self) -> &dyn Journal;

    fn claim(&self, tree: TreeId) -> Reading<Claim> {
        self.inner().claim(tree)
    }

    fn release(&self, claim: Claim) -> Reading<()> {
        self.inner().release(claim)
    }

    fn append(&self, append: Append, done: Appended) {
        self.inner().append(append, done);
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>> {
        self.inner().read(tree, after, batches_max)
    }

    fn read_stored(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<StoredEntry>> {
        self.inner().read_stored(tree, after, batches_max)
    }

    fn head(&self, tree: TreeId) -> Reading<Option<Head>> {
        self.inner().head(tree)
    }

    fn changed(&self, tree: TreeId, after: Seq) -> Reading<Head> {
        self.inner().changed(tree, after)
    }

    fn head_page(&self, states: &[TreeState], after: HeadCursor, heads_max: usize) -> Reading<HeadPage> {
        self.inner().head_page(states, after, heads_max)
    }

    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Reading<Vec<Fact>> {
        self.inner().catalog(kind, prefix)
    }

    fn reserve(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<Reservation> {
        self.inner().reserve(claim, kind, key)
    }

    fn free(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<()> {
        self.inner().free(claim, kind, key)
    }

    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Reading<()> {
        self.inner().replace_catalog(tree, at, rows)
    }

    fn blob(&self, blob: &BlobRef) -> Reading<Option<Vec<u8>>> {
        self.inner().blob(blob)
    }

    fn remove(&self, tree: TreeId, shared: Shared) -> Reading<()> {
        self.inner().remove(tree, shared)
    }
}

impl<L: JournalLayer> Journal for L {
    fn claim(&self, tree: TreeId) -> Reading<Claim> {
        JournalLayer::claim(self, tree)
    }

    fn release(&self, claim: Claim) -> Reading<()> {
        JournalLayer::release(self, claim)
    }

    fn append(&self, append: Append, done: Appended) {
        JournalLayer::append(self, append, done);
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>> {
        JournalLayer::read(self, tree, after, batches_max)
    }

    fn read_stored(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<StoredEntry>> {
        JournalLayer::read_stored(self, tree, after, batches_max)
    }

    fn head(&self, tree: TreeId) -> Reading<Option<Head>> {
        JournalLayer::head(self, tree)
    }

    fn changed(&self, tree: TreeId, after: Seq) -> Reading<Head> {
        JournalLayer::changed(self, tree, after)
    }

    fn head_page(&self, states: &[TreeState], after: HeadCursor, heads_max: usize) -> Reading<HeadPage> {
        JournalLayer::head_page(self, states, after, heads_max)
    }

    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Reading<Vec<Fact>> {
        JournalLayer::catalog(self, kind, prefix)
    }

    fn reserve(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<Reservation> {
        JournalLayer::reserve(self, claim, kind, key)
    }

    fn free(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<()> {
        JournalLayer::free(self, claim, kind, key)
    }

    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Reading<()> {
        JournalLayer::replace_catalog(self, tree, at, rows)
    }

    fn blob(&self, blob: &BlobRef) -> Reading<Option<Vec<u8>>> {
        JournalLayer::blob(self, blob)
    }

    fn remove(&self, tree: TreeId, shared: Shared) -> Reading<()> {
        JournalLayer::remove(self, tree, shared)
    }
}
