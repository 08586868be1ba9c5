//! Whether a journal is whole: every batch follows the one before it, and the last is the one that the head names.
//!
//! Each batch is checked against its hash when it is read. What is left to see here is what no single batch can show:
//! a gap, a tail that was cut off, a head that was changed.

use spinney_kernel::words::{Seq, TreeId};

use crate::{ChainHash, Journal, JournalFault, pages};

/// Reads a journal from its start and checks the whole chain; gives the hash over all of it. With `expect`, that must
/// be the hash: so even a tail that was cut off together with its head is found.
///
/// # Errors
/// [`JournalFault::Damaged`] with the last event that is whole, or that the journal cannot be read.
pub async fn verify_chain(
    journal: &dyn Journal,
    tree: TreeId,
    expect: Option<ChainHash>,
) -> Result<ChainHash, JournalFault> {
    // Taken first: what is appended meanwhile lies behind it.
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
