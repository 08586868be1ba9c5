//! A tree read from its journal, for views: it is not running, and nothing is written or called.

use std::sync::Arc;

use spinney_journal::{ChainHash, Journal, JournalFault};
use spinney_kernel::primitives::TreeId;

use super::TreeSnapshot;
use super::live_state::LiveState;
use crate::clock::SystemClock;
use crate::rng::Rng;

/// A stored tree that is not running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The tree at its last event.
    pub snapshot: TreeSnapshot,
    /// The hash over all its events.
    pub hash: ChainHash,
}

/// Reads a tree that is not running. Use [`verify`](super::verify) to check a journal.
///
/// # Errors
/// If the tree does not exist, or its journal cannot be read.
pub async fn stored(journal: &dyn Journal, tree: TreeId) -> Result<Stored, JournalFault> {
    let head = journal.head(tree).await?.ok_or(JournalFault::UnknownTree { tree })?;
    // Nothing is decided, so clock and random numbers do not matter.
    let mut live = LiveState::new(tree, Arc::new(SystemClock::new()), Rng::seeded(0));
    live.recover(journal, &head).await?;
    Ok(Stored { snapshot: TreeSnapshot::at(&live.world, &live.contexts), hash: head.hash })
}
