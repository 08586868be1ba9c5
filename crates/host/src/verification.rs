//! Verifies a tree from its journal, and compares its end with what this machine recorded: nothing inside a journal can show
//! that its last events were removed.

use std::path::Path;

use spinney::tree::{Diverged, Verified, verify};
use spinney_journal::{ChainHash, Journal, JournalFault};
use spinney_kernel::primitives::TreeId;

use crate::trust::tree_marks;
use crate::user::state_files::StateFileError;

/// How often a journal is read again because it grew meanwhile.
const TRIES_MAX: u32 = 5;

/// Why it is unknown whether a tree is as it was.
#[derive(Debug, thiserror::Error)]
pub enum UnverifiedTree {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// What is recorded of it cannot be read.
    #[error(transparent)]
    State(#[from] StateFileError),
    /// It is always longer than what was read.
    #[error("the tree is running and grows faster than it can be verified: try again when it has stopped")]
    Grows,
}

/// Verifies a journal, again if it grew meanwhile.
pub async fn verify_stored(
    journal: &dyn Journal,
    tree: TreeId,
    expect: Option<ChainHash>,
) -> Result<Result<Verified, Diverged>, UnverifiedTree> {
    for _ in 0..TRIES_MAX {
        let before = journal.head(tree).await?;
        let verified = verify(journal, tree, expect).await;
        if verified.is_ok() || before == journal.head(tree).await? {
            return Ok(verified);
        }
    }
    Err(UnverifiedTree::Grows)
}

/// What is known outside a journal about its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedEnd {
    /// Nothing is recorded of it here.
    Unrecorded,
    /// So many events are recorded, and it has them; it may have more.
    Matches {
        /// Events in the journal.
        found: u64,
        /// Events that were recorded.
        recorded: u64,
    },
    /// It does not have the events that were recorded.
    Differs {
        /// Events in the journal.
        found: u64,
        /// Events that were recorded.
        recorded: u64,
    },
}

impl RecordedEnd {
    /// Compares a stored tree with what this machine recorded of it.
    pub async fn compare(home: &Path, journal: &dyn Journal, tree: TreeId) -> Result<Self, UnverifiedTree> {
        // One that was only started says nothing about its end.
        let mark = tree_marks::find(home, tree)?.filter(|mark| mark.events() > 0);
        let Some((mark, head)) = mark.zip(journal.head(tree).await?) else { return Ok(Self::Unrecorded) };
        let (found, recorded) = (head.seq.0, mark.events());
        Ok(match mark.is_in(journal, &head).await? {
            true => Self::Matches { found, recorded },
            false => Self::Differs { found, recorded },
        })
    }
}
