//! The homes below a home: each `spinney exec` has one of its own, so that several run side by side in one folder. It is
//! named after its only tree, and every command that names a tree finds it.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use spinney_journal::{Blocking, Journal};
use spinney_kernel::words::TreeId;
use spinney_store::SqliteJournal;
use spinney_store::layout::EXEC;

use super::ids::{LAST, LISTED_MAX, TreeNameError};
use super::open::{HomeError, check, look};
pub use crate::run_folder::{above, has_folder, has_journal, home_of, is_of_exec, trees};
use crate::text_file::{FileAction, FileFault};

/// Why the home of a run cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ExecHomeError {
    /// The home above it is none.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The folder of such homes cannot be used.
    #[error(transparent)]
    Folder(#[from] FileFault),
    /// Something else lies in its place.
    #[error("{} is not a folder that Spinney made: move it away, or choose another home", .0.display())]
    NotOurs(PathBuf),
}

/// Makes the folders above the home of a run: for their owner only, and in a home of ours.
pub fn make(home: &Path) -> Result<(), ExecHomeError> {
    check(home)?;
    let folder = home.join(EXEC);
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => made.map_err(FileFault::when(FileAction::Make, &folder))?,
    }
    let about = fs::symlink_metadata(&folder).map_err(FileFault::when(FileAction::Read, &folder))?;
    if !about.is_dir() {
        return Err(ExecHomeError::NotOurs(folder));
    }
    Ok(())
}

/// Whether a run has a tree: its process may have been killed before it began.
fn has_begun(home: &Path, open: OpenJournal) -> bool {
    match open(home) {
        Ok(journal) => journal.heads(&[]).wait().map_or(true, |heads| !heads.is_empty()),
        Err(error) => !error.is_missing(),
    }
}

/// How a home is opened for reading.
pub type OpenJournal = fn(&Path) -> Result<SqliteJournal, HomeError>;

/// The home that has the tree which `id` names: the given one, or one below it.
pub fn find(home: &Path, id: &str) -> Result<PathBuf, TreeNameError> {
    find_with(home, id, look)
}

/// The same, with another way to open them.
pub fn find_with(home: &Path, id: &str, open: OpenJournal) -> Result<PathBuf, TreeNameError> {
    let runs = trees(home);
    if runs.is_empty() {
        return Ok(home.to_owned());
    }
    let own: Vec<TreeId> = match open(home) {
        Ok(journal) => journal.heads(&[]).wait()?.into_iter().map(|head| head.tree).collect(),
        // A home without a journal of its own has only these.
        Err(_) => Vec::new(),
    };
    let wanted = id.to_ascii_lowercase();
    if wanted == LAST {
        // Ids begin with the time of their start.
        let newer = runs.iter().rev().take_while(|run| own.last().is_none_or(|own| own < *run));
        let newest = newer.into_iter().find(|run| has_begun(&home_of(home, **run), open));
        return Ok(newest.map_or_else(|| home.to_owned(), |newest| home_of(home, *newest)));
    }
    let is_meant = |tree: &&TreeId| tree.to_string().starts_with(&wanted);
    let found: Vec<&TreeId> = runs.iter().filter(is_meant).collect();
    match (found.as_slice(), own.iter().filter(is_meant).count()) {
        // No journal there could say that it has no such tree.
        ([], 0) if !has_journal(home) => {
            Err(TreeNameError::Unknown { home: home.to_owned(), text: id.to_owned(), has_trees: true })
        }
        ([], _) => Ok(home.to_owned()),
        ([one], 0) => Ok(home_of(home, **one)),
        (several, others) => {
            let some = several.iter().take(LISTED_MAX).map(ToString::to_string).collect();
            Err(TreeNameError::Several { text: id.to_owned(), count: several.len() + others, some })
        }
    }
}
