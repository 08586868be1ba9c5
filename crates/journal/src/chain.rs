//! Checks that a journal is complete: every batch follows the one before it, and the last is the one that the head
//! names.
//!
//! Reading checks each batch against its hash. This finds what no single batch can show: a gap, a tail that was cut
//! off, a changed head.

use spinney_kernel::primitives::{Seq, TreeId};

use crate::{ChainHash, Journal, JournalFault, pages};

/// Reads a journal from its start, checks the whole chain and returns the final hash. With `expect`, the hash must
/// match: this finds even a tail that was cut off together with its head.
///
/// # Errors
/// [`JournalFault::Damaged`] with the last valid event, or why the journal cannot be read.
pub async fn verify_chain(
    journal: &dyn Journal,
    tree: TreeId,
    expect: Option<ChainHash>,
) -> Result<ChainHash, JournalFault> {
    // Read first: anything appended meanwhile comes after it.
    let head = journal.head(tree).await?.ok_or(JournalFault::UnknownTree { tree })?;
    let (mut end, mut hash) = (Seq(0), ChainHash::start(head.seed));
    let damaged = |after: Seq, reason: String| Err(JournalFault::Damaged { tree, after: after.0, reason });
    let mut pages = pages(journal, tree, Seq(0));
    while let Some(page) = pages.next().await? {
        for entry in page {
            if entry.after != end {
                return damaged(end, format!("the next batch begins after event {}", entry.after.0));
            }
            if entry.after >= head.seq {
                break;
            }
            (end, hash) = (entry.end(), entry.hash);
        }
    }
    if end != head.seq {
        return damaged(end, format!("it ends there, and its head is at event {}", head.seq.0));
    }
    if hash != head.hash {
        return damaged(end, format!("its hash is {hash}, and its head says {}", head.hash));
    }
    match expect {
        Some(expected) if expected != hash => {
            damaged(end, format!("its hash is {hash}, and {expected} was expected"))
        }
        Some(_) | None => Ok(hash),
    }
}
