//! A journal around another one: passes on what a test does not change.

/// Methods of a journal that pass the call on to `self.inner`.
macro_rules! pass_on {
    ($($method:ident),+) => { $($crate::journal_wrapper::pass_on!(@$method);)+ };
    (@claim) => {
        fn claim(
            &self,
            tree: spinney_kernel::primitives::TreeId,
        ) -> spinney_journal::Reading<spinney_journal::Claim> {
            self.inner.claim(tree)
        }
    };
    (@release) => {
        fn release(&self, claim: spinney_journal::Claim) -> spinney_journal::Reading<()> {
            self.inner.release(claim)
        }
    };
    (@changed) => {
        fn changed(
            &self,
            tree: spinney_kernel::primitives::TreeId,
            after: spinney_kernel::primitives::Seq,
        ) -> spinney_journal::Reading<spinney_journal::Head> {
            self.inner.changed(tree, after)
        }
    };
    (@reserve) => {
        fn reserve(
            &self,
            claim: spinney_journal::Claim,
            kind: spinney_journal::CatalogKind,
            key: &str,
        ) -> spinney_journal::Reading<spinney_journal::Reservation> {
            self.inner.reserve(claim, kind, key)
        }
    };
    (@free) => {
        fn free(
            &self,
            claim: spinney_journal::Claim,
            kind: spinney_journal::CatalogKind,
            key: &str,
        ) -> spinney_journal::Reading<()> {
            self.inner.free(claim, kind, key)
        }
    };
    (@append) => {
        fn append(&self, append: spinney_journal::Append, done: spinney_journal::Appended) {
            self.inner.append(append, done);
        }
    };
    (@read) => {
        fn read(
            &self,
            tree: spinney_kernel::primitives::TreeId,
            after: spinney_kernel::primitives::Seq,
            batches_max: usize,
        ) -> spinney_journal::Reading<Vec<spinney_journal::Entry>> {
            self.inner.read(tree, after, batches_max)
        }
    };
    (@read_stored) => {
        fn read_stored(
            &self,
            tree: spinney_kernel::primitives::TreeId,
            after: spinney_kernel::primitives::Seq,
            batches_max: usize,
        ) -> spinney_journal::Reading<Vec<spinney_journal::StoredEntry>> {
            self.inner.read_stored(tree, after, batches_max)
        }
    };
    (@head) => {
        fn head(
            &self,
            tree: spinney_kernel::primitives::TreeId,
        ) -> spinney_journal::Reading<Option<spinney_journal::Head>> {
            self.inner.head(tree)
        }
    };
    (@head_page) => {
        fn head_page(
            &self,
            states: &[spinney_kernel::world::TreeState],
            after: spinney_journal::HeadCursor,
            heads_max: usize,
        ) -> spinney_journal::Reading<spinney_journal::HeadPage> {
            self.inner.head_page(states, after, heads_max)
        }
    };
    (@catalog) => {
        fn catalog(
            &self,
            kind: spinney_journal::CatalogKind,
            prefix: &str,
        ) -> spinney_journal::Reading<Vec<spinney_journal::Fact>> {
            self.inner.catalog(kind, prefix)
        }
    };
    (@replace_catalog) => {
        fn replace_catalog(
            &self,
            tree: spinney_kernel::primitives::TreeId,
            at: spinney_kernel::primitives::Seq,
            rows: Vec<spinney_journal::CatalogRow>,
        ) -> spinney_journal::Reading<()> {
            self.inner.replace_catalog(tree, at, rows)
        }
    };
    (@blob) => {
        fn blob(
            &self,
            blob: &spinney_kernel::primitives::BlobRef,
        ) -> spinney_journal::Reading<Option<Vec<u8>>> {
            self.inner.blob(blob)
        }
    };
    (@remove) => {
        fn remove(
            &self,
            tree: spinney_kernel::primitives::TreeId,
            shared: spinney_journal::Shared,
        ) -> spinney_journal::Reading<()> {
            self.inner.remove(tree, shared)
        }
    };
}

pub(crate) use pass_on;
