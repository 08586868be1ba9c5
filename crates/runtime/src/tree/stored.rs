//! A tree as its journal has it, for whoever only looks: nobody runs it, and nothing is written or called.

use std::sync::Arc;

use spinney_journal::{ChainHash, Journal, JournalFault};
use spinney_kernel::words::TreeId;

use super::Look;
use super::live_state::LiveState;
use crate::clock::SystemClock;
use crate::draw::Draws;

/// A tree that is not run, as it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The tree at its last event.
    pub look: Look,
    /// The hash over all its events.
    pub hash: ChainHash,
}

/// Reads back a tree that nobody runs. To check a journal there is [`verify`](super::verify).
///
/// # Errors
/// If the tree is not there, or its journal cannot be read.
pub async fn stored(journal: &dyn Journal, tree: TreeId) -> Result<Stored, JournalFault> {
    let head = journal.head(tree).await?.ok_or(JournalFault::UnknownTree { tree })?;
    // Nothing is decided, so neither the time nor what is drawn matters.
    let mut live = LiveState::new(tree, Arc::new(SystemClock::new()), Draws::seeded(0));
    live.recover(journal, &head).await?;
    Ok(Stored { look: Look::at(&live.world, &live.contexts), hash: head.hash })
}
