//! Where a tree continues one that had ended.

use std::ops::ControlFlow;

use spinney_journal::{Batch, Journal, JournalFault};
use spinney_kernel::primitives::{Seq, TreeId};
use spinney_kernel::record::Event;

use crate::{TreeBeginning, TreeFold, fold};

/// The event from which on a tree continues one that had ended, the last one of a chain; 0 if there is none. An end of the root
/// before that is not its last.
///
/// # Errors
/// If the tree cannot be read.
pub async fn continued_at(journal: &dyn Journal, tree: TreeId) -> Result<Seq, JournalFault> {
    Ok(read(journal, tree).await?.at)
}

/// Whether the root of a tree waits for a person after each answer.
///
/// # Errors
/// If the tree cannot be read.
pub async fn is_kept(journal: &dyn Journal, tree: TreeId) -> Result<bool, JournalFault> {
    let continued = read(journal, tree).await?;
    let definition = TreeBeginning::read(journal, tree).await?.definition;
    Ok(continued.is_kept.unwrap_or_else(|| definition.is_some_and(|definition| definition.is_kept)))
}

/// Only what begins with the events of another tree can be a continuation.
async fn read(journal: &dyn Journal, tree: TreeId) -> Result<Continued, JournalFault> {
    let mut continued = Continued::default();
    if journal.head(tree).await?.is_some_and(|head| head.base.is_some()) {
        fold(journal, tree, &mut continued).await?;
    }
    Ok(continued)
}

#[derive(Default)]
struct Continued {
    seq: Seq,
    at: Seq,
    is_kept: Option<bool>,
}

impl TreeFold for Continued {
    fn take(&mut self, batch: &Batch) -> ControlFlow<()> {
        for event in &batch.events {
            self.seq = Seq(self.seq.0 + 1);
            if let Event::TreeBranched(branched) = event
                && let Some(continuation) = &branched.continuation
            {
                (self.at, self.is_kept) = (self.seq, Some(continuation.is_kept));
            }
        }
        ControlFlow::Continue(())
    }
}
