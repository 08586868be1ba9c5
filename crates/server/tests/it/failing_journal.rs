//! A journal whose disk is full from a moment on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spinney::{Journal, MemoryJournal};
use spinney_journal::{Append, Appended, JournalFault, JournalLayer};

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

impl JournalLayer for FailingJournal {
    fn inner(&self) -> &dyn Journal {
        &self.inner
    }

    fn append(&self, append: Append, done: Appended) {
        if self.is_full.load(Ordering::SeqCst) {
            done(Err(JournalFault::Full));
        } else {
            self.inner.append(append, done);
        }
    }
}
