//! One way to read a tree: every view takes its batches in order.

use std::ops::ControlFlow;

use spinney::bus::{Tail, TracedEvent};
use spinney_journal::{Batch, Journal, JournalFault, pages};
use spinney_kernel::primitives::{Seq, TreeId};

/// A view that is made from the batches of a tree.
pub trait TreeFold {
    /// Takes the next batch, and says whether it needs more of them.
    fn take(&mut self, batch: &Batch) -> ControlFlow<()>;
}

/// Reads a tree from its first batch on, to its end or as far as the view needs it.
///
/// # Errors
/// If the tree does not exist, or its data cannot be read.
pub async fn fold(
    journal: &dyn Journal,
    tree: TreeId,
    into: &mut (impl TreeFold + ?Sized),
) -> Result<(), JournalFault> {
    let mut pages = pages(journal, tree, Seq(0));
    while let Some(page) = pages.next().await? {
        for entry in &page {
            if into.take(&entry.batch).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads a tree event by event, each with its context, to its end or to the first error.
///
/// # Errors
/// If the tree cannot be read, or one of `see`.
pub async fn each_event<E: From<JournalFault>>(
    journal: &dyn Journal,
    tree: TreeId,
    mut see: impl FnMut(&TracedEvent) -> Result<(), E>,
) -> Result<(), E> {
    let mut tail = Tail::new(journal, tree);
    while let Some(traced) = tail.next().await? {
        see(&traced)?;
    }
    Ok(())
}
