//! A lull: nobody has anything to do but to wait for the journal. Then it writes what it left for company. Of all trees
//! of a home one at a time watches for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a tree of a home watches for a lull.
#[derive(Clone, Default)]
pub(crate) struct Lull(Arc<AtomicBool>);

/// A tree's part in watching.
pub(super) struct Watch {
    lull: Lull,
    is_mine: bool,
}

impl Watch {
    pub(super) const fn new(lull: Lull) -> Self {
        Self { lull, is_mine: false }
    }

    /// Something is on its way to the journal: this tree watches, unless another does.
    pub(super) fn begin(&mut self) {
        // Whoever leaves this to another has brought its batch before, and the other looks for batches after its watch.
        self.is_mine = self.is_mine || !self.lull.0.swap(true, Ordering::AcqRel);
    }

    pub(super) const fn is_mine(&self) -> bool {
        self.is_mine
    }

    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_mine) {
            self.lull.0.store(false, Ordering::Release);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end();
    }
}
