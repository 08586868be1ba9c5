//! Removes a tree with everything that its home keeps of it. What its agents changed in working copies is taken over first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney::{Drivers, Home, Orphan, RemoveError};
use spinney_drivers::working_copies::{UntakenFiles, WorkingCopy};
use spinney_journal::{Journal as _, JournalFault, Shared};
use spinney_kernel::primitives::{AgentId, TreeId};
use spinney_store::SqliteJournal;
use spinney_view::branches::AgentBranch;

use crate::error_text::with_causes;
use crate::home::pending_folders::{self, UnsettledFolders};
use crate::home::working_copies::{CopyError, HomeCopies, branches, release};
use crate::home::{HomeError, open_writable_to_remove, side_journals};
use crate::text_file::{FileAction, FileFault};
use crate::trust::tree_marks;

/// Why a tree was not removed, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum UnremovedTree {
    /// The home cannot be opened.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Branches use it, or the journal failed.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// It runs.
    #[error(transparent)]
    Running(RemoveError),
    /// A file or folder of it failed.
    #[error(transparent)]
    Folder(#[from] FileFault),
    /// What an agent changed could not be taken over, and would be lost.
    #[error("the changes of {agent} are only in {}", folder.display())]
    Copy {
        /// The agent.
        agent: AgentId,
        /// Its working copy.
        folder: PathBuf,
        /// Why.
        #[source]
        source: CopyError,
    },
    /// It was removed, and its folders were not.
    #[error(transparent)]
    Unsettled(UnsettledFolders),
}

/// What becomes of changes that cannot be taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UntakenChanges {
    /// The tree stays.
    Refuse,
    /// They are removed.
    Remove,
}

/// What is left of a tree that was removed.
#[derive(Debug, Default)]
pub struct RemovedTree {
    /// The branches of the tree that now own what they shared with it.
    pub orphans: Vec<Orphan>,
    /// Branches of repositories with what its agents changed.
    pub branches: Vec<AgentBranch>,
    /// What was in working copies and was removed with them, by agent.
    pub left_out: Vec<(AgentId, UntakenFiles)>,
}

/// Removes a tree that no process runs.
pub async fn remove(
    home: &Path,
    tree: TreeId,
    shared: Shared,
    untaken: UntakenChanges,
) -> Result<RemovedTree, UnremovedTree> {
    let journal = open_writable_to_remove(home).await?;
    let (copies, mut removed) = take_copies(home, tree, untaken).await?;
    removed.orphans = remove_journal(home, tree, shared, journal).await?;
    for copy in copies {
        release(&copy).await;
    }
    Ok(removed)
}

/// Takes over what agents changed.
async fn take_copies(
    home: &Path,
    tree: TreeId,
    untaken: UntakenChanges,
) -> Result<(Vec<WorkingCopy>, RemovedTree), UnremovedTree> {
    let all = HomeCopies::new(home);
    let mut copies = all.all(tree).map_err(FileFault::when(FileAction::Read, home))?;
    let mut removed = RemovedTree::default();
    for copy in &mut copies {
        match all.take_over(copy).await {
            Ok(taken) if taken.left_out.is_empty() => {}
            Ok(taken) => removed.left_out.push((copy.agent().clone(), taken.left_out)),
            Err(source) if untaken == UntakenChanges::Refuse => {
                let (agent, folder) = (copy.agent().clone(), copy.folder());
                return Err(UnremovedTree::Copy { agent, folder, source });
            }
            Err(error) => tracing::warn!("the changes of {} are lost: {}", copy.agent(), with_causes(&error)),
        }
    }
    removed.branches = branches(home, tree);
    Ok((copies, removed))
}

async fn remove_journal(
    home: &Path,
    tree: TreeId,
    shared: Shared,
    journal: SqliteJournal,
) -> Result<Vec<Orphan>, UnremovedTree> {
    let is_last = journal.heads(&[]).await?.iter().all(|head| head.tree == tree);
    if side_journals::side_tree(home).is_some() && is_last {
        // First: what is recorded of a tree that is not there would vouch for another one in its place.
        tree_marks::forget(home, tree);
        side_journals::remove(home, journal)?;
        return Ok(Vec::new());
    }
    let opened = Home::open(Arc::new(journal), Drivers::new());
    pending_folders::mark(home, tree)?;
    let removed = opened.remove(tree, shared).await;
    let settled = pending_folders::settle(home, opened.journal().as_ref()).await;
    let orphans = removed.map_err(|error| match error {
        RemoveError::Journal(fault) => fault.into(),
        running => UnremovedTree::Running(running),
    })?;
    settled.map_err(UnremovedTree::Unsettled)?;
    side_journals::settle_branch(home, opened.journal().as_ref(), tree).await?;
    drop(opened);
    tree_marks::forget(home, tree);
    Ok(orphans)
}
