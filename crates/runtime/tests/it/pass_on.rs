//! A journal around another: what a test does not change is passed on to the one inside.

/// Methods of a journal that only pass on what they are asked to `self.inner`.
macro_rules! pass_on {
    ($($method:ident),+) => { $($crate::pass_on::pass_on!(@$method);)+ };
    (@append) => {
        fn append(&self, append: spinney_kernel::port::journal::Append, done: spinney_kernel::port::journal::Appended) {
            self.inner.append(append, done);
        }
    };
    (@read) => {
        fn read(
            &self,
            tree: spinney_kernel::id::TreeId,
            after: spinney_kernel::id::Seq,
            batches_max: usize,
        ) -> Result<Vec<spinney_kernel::port::journal::Entry>, spinney_kernel::port::journal::JournalFault> {
            self.inner.read(tree, after, batches_max)
        }
    };
    (@head) => {
        fn head(
            &self,
            tree: spinney_kernel::id::TreeId,
        ) -> Result<Option<spinney_kernel::port::journal::Head>, spinney_kernel::port::journal::JournalFault> {
            self.inner.head(tree)
        }
    };
    (@heads) => {
        fn heads(
            &self,
            states: &[&str],
        ) -> Result<Vec<spinney_kernel::port::journal::Head>, spinney_kernel::port::journal::JournalFault> {
            self.inner.heads(states)
        }
    };
    (@catalog) => {
        fn catalog(
            &self,
            kind: spinney_kernel::port::catalog::CatalogKind,
            prefix: &str,
        ) -> Result<Vec<spinney_kernel::port::catalog::Fact>, spinney_kernel::port::journal::JournalFault> {
            self.inner.catalog(kind, prefix)
        }
    };
    (@replace_catalog) => {
        fn replace_catalog(
            &self,
            tree: spinney_kernel::id::TreeId,
            at: spinney_kernel::id::Seq,
            rows: Vec<spinney_kernel::port::catalog::CatalogRow>,
        ) -> Result<(), spinney_kernel::port::journal::JournalFault> {
            self.inner.replace_catalog(tree, at, rows)
        }
    };
    (@blob) => {
        fn blob(
            &self,
            blob: &spinney_kernel::body::BlobRef,
        ) -> Result<Option<Vec<u8>>, spinney_kernel::port::journal::JournalFault> {
            self.inner.blob(blob)
        }
    };
    (@remove) => {
        fn remove(
            &self,
            tree: spinney_kernel::id::TreeId,
            shared: spinney_kernel::port::journal::Shared,
        ) -> Result<(), spinney_kernel::port::journal::JournalFault> {
            self.inner.remove(tree, shared)
        }
    };
}

pub(crate) use pass_on;
