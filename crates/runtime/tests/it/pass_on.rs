//! A journal around another: what a test does not change is passed on to the one inside.

/// Methods of a journal that only pass on what they are asked to `self.inner`.
macro_rules! pass_on {
    ($($method:ident),+) => { $($crate::pass_on::pass_on!(@$method);)+ };
    (@append) => {
        fn append(&self, append: spinney_journal::Append, done: spinney_journal::Appended) {
            self.inner.append(append, done);
        }
    };
    (@read) => {
        fn read(
            &self,
            tree: spinney_kernel::words::TreeId,
            after: spinney_kernel::words::Seq,
            batches_max: usize,
        ) -> Result<Vec<spinney_journal::Entry>, spinney_journal::JournalFault> {
            self.inner.read(tree, after, batches_max)
        }
    };
    (@head) => {
        fn head(
            &self,
            tree: spinney_kernel::words::TreeId,
        ) -> Result<Option<spinney_journal::Head>, spinney_journal::JournalFault> {
            self.inner.head(tree)
        }
    };
    (@heads) => {
        fn heads(
            &self,
            states: &[&str],
        ) -> Result<Vec<spinney_journal::Head>, spinney_journal::JournalFault> {
            self.inner.heads(states)
        }
    };
    (@catalog) => {
        fn catalog(
            &self,
            kind: spinney_journal::CatalogKind,
            prefix: &str,
        ) -> Result<Vec<spinney_journal::Fact>, spinney_journal::JournalFault> {
            self.inner.catalog(kind, prefix)
        }
    };
    (@replace_catalog) => {
        fn replace_catalog(
            &self,
            tree: spinney_kernel::words::TreeId,
            at: spinney_kernel::words::Seq,
            rows: Vec<spinney_journal::CatalogRow>,
        ) -> Result<(), spinney_journal::JournalFault> {
            self.inner.replace_catalog(tree, at, rows)
        }
    };
    (@blob) => {
        fn blob(
            &self,
            blob: &spinney_kernel::words::BlobRef,
        ) -> Result<Option<Vec<u8>>, spinney_journal::JournalFault> {
            self.inner.blob(blob)
        }
    };
    (@remove) => {
        fn remove(
            &self,
            tree: spinney_kernel::words::TreeId,
            shared: spinney_journal::Shared,
        ) -> Result<(), spinney_journal::JournalFault> {
            self.inner.remove(tree, shared)
        }
    };
}

pub(crate) use pass_on;
