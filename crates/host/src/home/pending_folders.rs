//! Folders of trees that are being made or removed: workspaces, and for trees of older releases the copies of their files.
//!
//! A process may die between changing a tree's folders and its journal. So each tree is marked, by an empty file
//! `<home>/trees/.pending-<tree>`, before its folders are made or removed, until both agree. The next process that writes
//! in the home settles marked trees only: if the journal has the tree its folders stay, otherwise they are removed.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use spinney_journal::{Journal, JournalFault};
use spinney_kernel::primitives::TreeId;
use spinney_store::layout::{TREES, WORKSPACES};

use crate::system::private_files;
use crate::system::remove_folder::remove_folder;
use crate::text_file::{FileAction, FileFault};

/// Prefix of the folder of a tree's copies until it is complete.
const UNFINISHED: &str = ".unfinished-";
/// Prefix of the file that marks a tree.
const PENDING: &str = ".pending-";

/// Why the folders of a tree do not match its journal yet.
#[derive(Debug, thiserror::Error)]
pub enum UnsettledFolders {
    /// One of them failed.
    #[error(transparent)]
    File(#[from] FileFault),
    /// The journal does not say whether the tree exists.
    #[error(transparent)]
    Journal(#[from] JournalFault),
}

/// Marks a tree whose folders are about to be made or removed.
pub fn mark(home: &Path, tree: TreeId) -> Result<(), FileFault> {
    let mark = named(home, PENDING, tree);
    let marked = private_files::folder(&home.join(TREES)).and_then(|()| private_files::write(&mark, b""));
    match marked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(FileFault::when(FileAction::Write, &mark)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes the folders of a marked tree match the journal, and removes the mark. Others may be starting meanwhile.
pub async fn settle_tree(home: &Path, journal: &dyn Journal, tree: TreeId) -> Result<(), UnsettledFolders> {
    if journal.head(tree).await?.is_none() {
        for folder in [home.join(WORKSPACES).join(tree.to_string()), copies(home, tree)] {
            remove(&folder)?;
        }
    }
    remove(&unfinished_copies(home, tree))?;
    Ok(remove(&named(home, PENDING, tree))?)
}

/// Settles every marked tree: of this process, or of one that died.
pub async fn settle(home: &Path, journal: &dyn Journal) -> Result<(), UnsettledFolders> {
    let folder = home.join(TREES);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries
            .and_then(|entries| entries.collect::<io::Result<Vec<_>>>())
            .map_err(FileFault::when(FileAction::Read, &folder))?,
    };
    let mut settled = Ok(());
    for name in entries.iter().map(fs::DirEntry::file_name) {
        let name = name.to_string_lossy();
        let marked = name.strip_prefix(PENDING).and_then(|tree| tree.parse::<TreeId>().ok());
        if let Some(tree) = marked {
            // A tree that cannot be settled does not affect the others.
            settled = settled.and(settle_tree(home, journal, tree).await);
        }
    }
    settled
}

/// Removes a file, or a folder with its content. Does not follow links.
fn remove(path: &Path) -> Result<(), FileFault> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => remove_folder(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(FileFault::when(FileAction::Remove, path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Where older releases kept what a tree is resumed from.
pub(super) fn copies(home: &Path, tree: TreeId) -> PathBuf {
    named(home, "", tree)
}

/// The same until it is complete.
pub(super) fn unfinished_copies(home: &Path, tree: TreeId) -> PathBuf {
    named(home, UNFINISHED, tree)
}

fn named(home: &Path, prefix: &str, tree: TreeId) -> PathBuf {
    home.join(TREES).join(format!("{prefix}{tree}"))
}
