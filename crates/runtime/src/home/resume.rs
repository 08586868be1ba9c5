//! Resumes trees from their journals, one or all of a home.

use spinney_journal::{Head, HeadCursor, JournalFault};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{TreeId, limit};
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;

use super::Home;
use crate::drivers::{Drivers, NoDriver};
use crate::tree::{NotFilled, Seed, Tree, claimed};

/// Why a tree could not be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// It has ended.
    #[error(
        "tree {tree} has ended ({state}): there is nothing to resume; start a new one, or replay this one"
    )]
    Ended {
        /// The tree.
        tree: TreeId,
        /// How it ended.
        state: ExitKind,
    },
    /// It already runs in this home.
    #[error("tree {tree} is already running in this home")]
    Running {
        /// The tree.
        tree: TreeId,
    },
    /// It was moved, or is a copy.
    #[error(transparent)]
    Sealed(Refusal),
    /// A driver is missing.
    #[error(transparent)]
    NoDriver(NoDriver),
    /// The journal failed.
    #[error(transparent)]
    Journal(JournalFault),
    /// The folder of an agent could not be filled with the files that it wrote.
    #[error("the files of tree {tree} cannot be written to their folders: {reason}")]
    Files {
        /// The tree.
        tree: TreeId,
        /// Which file, and why.
        reason: String,
    },
    /// The home is being shut down.
    #[error("the home is being shut down: open it again to resume trees")]
    Shutdown,
}

impl Home {
    /// Resumes every tree that has not ended, page by page: trees run while the next ones are listed.
    ///
    /// # Errors
    /// If the journal cannot be listed; trees that were listed before run then. A tree that cannot be resumed does not
    /// affect the others.
    pub async fn recover(&self) -> Result<Vec<(TreeId, Result<Tree, ResumeError>)>, JournalFault> {
        let mut resumed = Vec::new();
        let mut next = Some(HeadCursor::START);
        while let Some(after) = next {
            let page = self.journal.head_page(&TreeState::LIVING, after, limit::HEADS_MAX).await?;
            for head in page.heads {
                resumed.push((head.tree, self.resume(head.tree).await));
            }
            next = page.next;
        }
        Ok(resumed)
    }

    /// Resumes a tree where its journal ends.
    ///
    /// # Errors
    /// If it has ended, already runs, does not exist, or a driver is missing.
    pub async fn resume(&self, tree: TreeId) -> Result<Tree, ResumeError> {
        let _starting = self.starting.read().await;
        let _lock = self.lock_tree(tree).await;
        if self.stop.is_cancelled() {
            return Err(ResumeError::Shutdown);
        }
        if self.tree(tree).is_some() {
            return Err(ResumeError::Running { tree });
        }
        let stop = self.stop.child_token();
        let seed = claimed(self.begin(tree, &stop)).await.map_err(ResumeError::Journal)?;
        let (head, drivers) = match self.resumable(tree, &seed).await {
            Ok(resumable) => resumable,
            Err(error) => {
                seed.release().await;
                return Err(error);
            }
        };
        tracing::info!(%tree, seq = head.seq.0, state = head.state.as_str(), "tree resumed");
        let mut prepared = seed.with(drivers);
        prepared.resume(&head);
        let (tree, task) = prepared.spawn();
        Ok(self.keep(tree, stop, task))
    }

    /// What a tree is resumed with.
    async fn resumable(&self, tree: TreeId, seed: &Seed) -> Result<(Head, Drivers), ResumeError> {
        let head = seed.head().ok_or(ResumeError::Journal(JournalFault::UnknownTree { tree }))?;
        if let TreeState::Ended(state) = seed.world().state() {
            return Err(ResumeError::Ended { tree, state });
        }
        if let Some(kind) = seed.world().sealed() {
            return Err(ResumeError::Sealed(Refusal::Sealed { kind: kind.clone() }));
        }
        let definition = seed.world().definition();
        let drivers = self.drivers(tree, definition).await.ok_or(ResumeError::Shutdown)?;
        let drivers = drivers.map_err(ResumeError::NoDriver)?;
        self.check_programs(definition).map_err(ResumeError::NoDriver)?;
        drivers.check(definition).map_err(ResumeError::NoDriver)?;
        seed.fill_folders(&drivers).await.map_err(|error| match error {
            NotFilled::Journal(fault) => ResumeError::Journal(fault),
            NotFilled::Folder(reason) => ResumeError::Files { tree, reason },
        })?;
        Ok((head, drivers))
    }
}
