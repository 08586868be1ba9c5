//! Why a tree is sealed, read from the end of its journal.

use spinney_kernel::primitives::{SealKind, Seq, limit};
use spinney_kernel::record::Event;

use crate::{Head, Journal, JournalFault};

/// Why a tree can only be read and branched. `None` if it is not sealed.
///
/// # Errors
/// If the journal cannot be read.
pub async fn seal_of(journal: &dyn Journal, head: &Head) -> Result<Option<SealKind>, JournalFault> {
    if !head.state.is_sealed() {
        return Ok(None);
    }
    let last = journal.read(head.tree, Seq(head.seq.0.saturating_sub(1)), limit::PAGE_BATCHES_MAX).await?;
    let sealed = |event: Event| match event {
        Event::TreeSealed { kind, .. } => Some(kind),
        _ => None,
    };
    Ok(last.into_iter().flat_map(|entry| entry.batch.events).filter_map(sealed).last())
}
