//! A stored tree that is read as it grows.

use std::ops::Deref;

use spinney::bus::Tail;
use spinney_journal::{Journal, JournalFault};
use spinney_kernel::primitives::TreeId;

use super::LiveTree;

/// A tree, and how far it was read.
pub struct FollowedTree<J> {
    tail: Tail<J>,
    tree: LiveTree,
}

impl<J: Deref<Target: Journal>> FollowedTree<J> {
    /// Before its first event is read.
    pub fn new(journal: J, tree: TreeId) -> Self {
        Self { tail: Tail::new(journal, tree), tree: LiveTree::new(tree) }
    }

    /// Reads what it did since the last time.
    ///
    /// # Errors
    /// If the tree cannot be read.
    pub async fn catch_up(&mut self) -> Result<(), JournalFault> {
        while let Some(traced) = self.tail.next().await? {
            self.tree.event(&traced);
        }
        Ok(())
    }

    /// As far as it was read.
    pub const fn tree(&self) -> &LiveTree {
        &self.tree
    }
}
