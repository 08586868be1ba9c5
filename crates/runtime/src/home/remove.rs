//! Removes trees, and tells the branches of one that is removed by force.

use spinney_journal::{Head, HeadCursor, JournalFault, Shared};
use spinney_kernel::primitives::{Actor, Body, Seq, TreeId, limit};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::Send;

use super::Home;
use crate::tree::release;

/// Why a tree could not be removed. Nothing was removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// It runs in this home.
    #[error("tree {tree} is running: cancel it first")]
    Running {
        /// The tree.
        tree: TreeId,
    },
    /// Branches use it, or the journal failed.
    #[error(transparent)]
    Journal(JournalFault),
}

/// A branch whose origin was removed by force. It now owns what it shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The branch.
    pub tree: TreeId,
    /// Whether its root got a message about it; an ended root reads nothing.
    pub notified: bool,
}

impl Home {
    /// Removes a tree. If it has branches, the refusal names them; by force, their roots get a message.
    ///
    /// # Errors
    /// If it runs, branches use it, or the journal failed. Then nothing is removed.
    pub async fn remove(&self, tree: TreeId, shared: Shared) -> Result<Vec<Orphan>, RemoveError> {
        let starting = self.starting.read().await;
        let lock = self.lock_tree(tree).await;
        if self.tree(tree).is_some() {
            return Err(RemoveError::Running { tree });
        }
        let branches = self.branches(tree).await.map_err(RemoveError::Journal)?;
        let owned = self.journal.claim(tree).await.map_err(RemoveError::Journal)?;
        if let Err(fault) = self.journal.remove(tree, shared).await {
            release(self.journal.as_ref(), owned).await;
            return Err(RemoveError::Journal(fault));
        }
        drop((lock, starting));
        let mut orphans = Vec::new();
        for (head, at) in branches {
            let text = format!(
                "tree {tree}, from which this tree branched at event {}, was removed; the part they share is kept here",
                at.0
            );
            let notified = !head.state.is_over() && self.notify_root(head.tree, text).await;
            orphans.push(Orphan { tree: head.tree, notified });
        }
        Ok(orphans)
    }

    /// The trees that read batches of this one, and up to which event.
    async fn branches(&self, tree: TreeId) -> Result<Vec<(Head, Seq)>, JournalFault> {
        let mut branches = Vec::new();
        let mut next = Some(HeadCursor::START);
        while let Some(after) = next {
            let page = self.journal.head_page(&[], after, limit::HEADS_MAX).await?;
            let based = page.heads.into_iter().filter_map(|head| Some((head.base?, head)));
            let of_tree = based.filter(|(base, _)| base.tree == tree);
            branches.extend(of_tree.map(|(base, head)| (head, base.at)));
            next = page.next;
        }
        Ok(branches)
    }

    /// Sends a message to the root of a tree, running or not. Returns whether it succeeded.
    async fn notify_root(&self, tree: TreeId, text: String) -> bool {
        let spawned = |event: Event| match event {
            Event::AgentSpawned(spawned) => Some(spawned.agent),
            _ => None,
        };
        let first = self.journal.read(tree, Seq(0), 1).await.unwrap_or_default();
        let Some(root) = first.into_iter().flat_map(|entry| entry.batch.events).find_map(spawned) else {
            return false;
        };
        let send = Send::plain(root, Body::text(text));
        match self.tree(tree) {
            Some(running) => running.request(Actor::RUNTIME, send).await.is_ok(),
            None => self.apply_as(Actor::RUNTIME, tree, send.into(), Vec::new()).await.is_ok(),
        }
    }
}
