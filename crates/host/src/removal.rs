//! Removes a tree with everything that its home keeps of it.

use std::path::Path;
use std::sync::Arc;

use spinney::{Drivers, Home, Orphan, RemoveError};
use spinney_journal::{Journal as _, JournalFault, Shared};
use spinney_kernel::primitives::TreeId;

use crate::home::pending_folders::{self, UnsettledFolders};
use crate::home::{HomeError, open_writable_to_remove, side_journals};
use crate::text_file::FileFault;
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
    /// It was removed, and its folders were not.
    #[error(transparent)]
    Unsettled(UnsettledFolders),
}

/// Removes a tree that no process runs. Returns the branches that now own what they shared with it.
pub async fn remove(home: &Path, tree: TreeId, shared: Shared) -> Result<Vec<Orphan>, UnremovedTree> {
    let journal = open_writable_to_remove(home).await?;
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
