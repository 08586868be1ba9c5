//! Side journals: a run that finds the home's own journal in use gets a journal of its tree alone, and so does every
//! program, so several run side by side in one folder. Every command that names a tree finds it here.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use spinney_journal::{Journal, JournalFault};
use spinney_kernel::primitives::TreeId;
use spinney_store::layout::{EXEC, RUNS};
use spinney_store::{OpenHomeError, SqliteJournal};
use spinney_view::TreeBeginning;

use super::ids::{LAST, LISTED_MAX, TreeNameError};
use super::open::{HomeError, check, open_read_only, open_writable_to_start};
use crate::exec::run_definition;
use crate::side_folders::branch_file;
pub use crate::side_folders::{
    SideTree, above, branches, folders, has_any, has_journal, is_in_exec, new_folder, side_tree, trees,
};
use crate::system::files;
use crate::system::private_files::{self, Links};
use crate::text_file::{FileAction, FileFault};

/// Prefix of a side journal that is being removed.
const REMOVING: &str = ".removing-";
/// Prefix of one whose tree is being imported.
const IMPORTING: &str = ".importing-";
/// The lock of the process that imports.
const IMPORTS: &str = ".imports";

/// Why a side journal cannot be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum SideJournalError {
    /// A home cannot be opened.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A file or folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FileFault),
    /// Something else is in its place.
    #[error("{} is not a folder that Spinney made: move it away, or choose another home", .0.display())]
    NotOurs(PathBuf),
}

/// The journal of a new tree.
pub struct JournalToStart {
    /// The home itself, or the folder of a side journal below it.
    pub folder: PathBuf,
    /// It, open for writing.
    pub journal: SqliteJournal,
}

/// Opens the home's own journal for a new tree if no process has it open, or else makes a side journal.
pub async fn open_to_start(home: &Path, tree: TreeId) -> Result<JournalToStart, SideJournalError> {
    match open_writable_to_start(home).await {
        Ok(journal) => {
            clean_up(home);
            Ok(JournalToStart { folder: home.to_owned(), journal })
        }
        Err(HomeError::Unopened { error: OpenHomeError::Locked { .. }, .. }) => make(home, tree).await,
        Err(error) => Err(error.into()),
    }
}

/// Makes the side journal of a new tree: for its owner only, and in a home that is ours.
pub async fn make(home: &Path, tree: TreeId) -> Result<JournalToStart, SideJournalError> {
    make_runs(home)?;
    let folder = new_folder(home, tree);
    let journal = open_writable_to_start(&folder).await?;
    Ok(JournalToStart { folder, journal })
}

/// The folder of side journals.
fn make_runs(home: &Path) -> Result<PathBuf, SideJournalError> {
    check(home)?;
    let runs = home.join(RUNS);
    match private_files::folder(&runs) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(SideJournalError::NotOurs(runs));
        }
        made => made.map_err(FileFault::when(FileAction::Make, &runs))?,
    }
    clean_up(home);
    Ok(runs)
}

/// The import of trees into a home. One process imports at a time: others wait for it.
pub struct Imports {
    home: PathBuf,
    runs: PathBuf,
    /// Held until the last tree is in its place: what is in the folder of an import is not left over.
    _lock: File,
}

impl Imports {
    /// Waits until no other process imports into a home.
    pub fn begin(home: &Path) -> Result<Self, SideJournalError> {
        let runs = make_runs(home)?;
        let path = runs.join(IMPORTS);
        let lock = private_files::open_or_make(&path).and_then(|lock| lock.lock().map(|()| lock));
        let lock = lock.map_err(FileFault::when(FileAction::Lock, &path))?;
        remove_imports(&runs);
        Ok(Self { home: home.to_owned(), runs, _lock: lock })
    }

    /// The folder for a tree while it is being imported. No command finds it there.
    pub fn folder(&self, tree: TreeId) -> PathBuf {
        self.runs.join(format!("{IMPORTING}{tree}"))
    }

    /// Puts an imported tree where commands find it, whole or not at all. What was there is removed: the same tree, or the file
    /// of a branch. The journal of the new one must be closed.
    pub fn place(&self, tree: TreeId) -> Result<(), FileFault> {
        let (importing, folder) = (self.folder(tree), new_folder(&self.home, tree));
        let placed = private_files::flush_all(&importing).and_then(|()| {
            if folder.symlink_metadata().is_err() {
                return fs::rename(&importing, &folder);
            }
            files::exchange(&importing, &folder, &self.runs.join(format!("{REMOVING}{tree}")))
        });
        placed
            .and_then(|()| private_files::flush(&self.runs))
            .map_err(FileFault::when(FileAction::Make, &folder))?;
        self.give_up(tree);
        Ok(())
    }

    /// Removes what is in the folder of an import.
    pub fn give_up(&self, tree: TreeId) {
        let importing = self.folder(tree);
        if let Err(error) = remove_folder(&importing) {
            tracing::warn!("could not remove {}: {error}", importing.display());
        }
    }
}

fn remove_imports(runs: &Path) {
    remove_left(runs, |name| name.starts_with(IMPORTING));
}

/// Removes what is left in a folder. What cannot be removed is tried again by the next process.
fn remove_left(folder: &Path, is_left: impl Fn(&str) -> bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        if is_left(&entry.file_name().to_string_lossy())
            && let Err(error) = remove_folder(&entry.path())
        {
            tracing::warn!("could not remove {}: {error}", entry.path().display());
        }
    }
}

/// Whether a home is the side journal of a program: then its tree is continued with that.
pub async fn is_of_exec(home: &Path) -> bool {
    let Some(tree) = side_tree(home) else { return false };
    // A journal that cannot be read does not say it.
    is_in_exec(home)
        || match open_read_only(home) {
            Ok(journal) => is_program(&journal, tree).await.unwrap_or(false),
            Err(_) => false,
        }
}

/// Whether a tree was started for a program.
pub async fn is_program(journal: &dyn Journal, tree: TreeId) -> Result<bool, JournalFault> {
    let definition = TreeBeginning::read(journal, tree).await?.definition;
    Ok(definition.is_some_and(|definition| run_definition::is_of_program(&definition)))
}

/// The folders of a home with a journal: its own, and those of side journals, oldest first.
pub fn journals(home: &Path) -> Vec<PathBuf> {
    let sides = folders(home).into_iter().map(|side| side.folder);
    [home.to_owned()].into_iter().chain(sides).filter(|folder| has_journal(folder)).collect()
}

/// How a home is opened for reading.
pub type OpenJournal = fn(&Path) -> Result<SqliteJournal, HomeError>;

/// Whether a tree is where its name says: its process may have been killed before it began, and it may be removed.
async fn exists(side: &SideTree, open: OpenJournal) -> bool {
    match open(&side.folder) {
        Ok(journal) => journal.head(side.tree).await.map_or(true, |head| head.is_some()),
        Err(HomeError::NotThere { .. }) => false,
        Err(error) => !error.is_missing(),
    }
}

/// The folder with the journal that has the tree which `id` names: the given home, or a side journal.
pub async fn find(home: &Path, id: &str) -> Result<PathBuf, TreeNameError> {
    find_with(home, id, open_read_only).await
}

/// The same, with another way to open them.
pub async fn find_with(home: &Path, id: &str, open: OpenJournal) -> Result<PathBuf, TreeNameError> {
    let sides = trees(home);
    if sides.is_empty() {
        return Ok(home.to_owned());
    }
    let mut own: Vec<TreeId> = match open(home) {
        Ok(journal) => journal.heads(&[]).await?.into_iter().map(|head| head.tree).collect(),
        // A home without its own journal has only these.
        Err(_) => Vec::new(),
    };
    for side in &sides {
        // It had moved away from the home's own journal, and came back into this one.
        if own.binary_search(&side.tree).is_ok() && exists(side, open).await {
            own.retain(|tree| *tree != side.tree);
        }
    }
    let wanted = id.to_ascii_lowercase();
    if wanted == LAST {
        // Ids begin with the time of their start.
        let newer = sides.into_iter().rev().take_while(|side| own.last().is_none_or(|own| *own < side.tree));
        for side in newer {
            if exists(&side, open).await {
                return Ok(side.folder);
            }
        }
        return Ok(home.to_owned());
    }
    let is_meant = |tree: &TreeId| tree.to_string().starts_with(&wanted);
    let meant: Vec<SideTree> = sides.into_iter().filter(|side| is_meant(&side.tree)).collect();
    let others = own.iter().filter(|tree| is_meant(tree)).count();
    let is_alone = meant.len() + others <= 1;
    let mut found = Vec::new();
    for side in meant {
        if is_alone || exists(&side, open).await {
            found.push(side);
        }
    }
    match (found.as_slice(), others) {
        // No journal there could say that it has no such tree.
        ([], 0) if !has_journal(home) => {
            Err(TreeNameError::Unknown { home: home.to_owned(), text: id.to_owned(), has_trees: true })
        }
        ([], _) => Ok(home.to_owned()),
        ([one], 0) => Ok(one.folder.clone()),
        (several, others) => {
            let some = several.iter().take(LISTED_MAX).map(|side| side.tree.to_string()).collect();
            Err(TreeNameError::Several { text: id.to_owned(), count: several.len() + others, some })
        }
    }
}

/// Says where a branch is, before it is made: a side journal has the name of its first tree.
pub fn add_branch(folder: &Path, branch: TreeId) -> Result<(), FileFault> {
    let Some((path, origin)) = branch_file(folder, branch).zip(side_tree(folder)) else { return Ok(()) };
    private_files::write(&path, format!("{origin}\n").as_bytes())
        .and_then(|()| private_files::flush(&path))
        .and_then(|()| path.parent().map_or(Ok(()), private_files::flush))
        .map_err(FileFault::when(FileAction::Write, &path))
}

/// Removes the files of branches that a side journal does not have. Only the process that writes it may do this.
pub async fn settle_branches(folder: &Path, journal: &dyn Journal) -> Result<(), JournalFault> {
    if side_tree(folder).is_none() {
        return Ok(());
    }
    for side in branches(folder) {
        settle_branch(folder, journal, side.tree).await?;
    }
    Ok(())
}

/// The same for one branch: others may be made meanwhile.
pub async fn settle_branch(folder: &Path, journal: &dyn Journal, branch: TreeId) -> Result<(), JournalFault> {
    if journal.head(branch).await?.is_none() {
        remove_branch_file(folder, branch);
    }
    Ok(())
}

/// A file that is left names a branch that is not there, and is passed over.
fn remove_branch_file(folder: &Path, branch: TreeId) {
    if let Some(path) = branch_file(folder, branch) {
        let _ = fs::remove_file(path);
    }
}

/// Removes a side journal whose trees are all to be removed, whole or not at all. Its journal must be open for writing here.
pub fn remove(folder: &Path, journal: SqliteJournal) -> Result<(), FileFault> {
    let (Some(tree), Some(above)) = (side_tree(folder), folder.parent()) else { return Ok(()) };
    let files = branches(folder);
    let removing = above.join(format!("{REMOVING}{tree}"));
    fs::rename(folder, &removing)
        .and_then(|()| private_files::flush(above))
        .map_err(FileFault::when(FileAction::Remove, folder))?;
    drop(journal);
    for side in files {
        remove_branch_file(folder, side.tree);
    }
    remove_folder(&removing).map_err(FileFault::when(FileAction::Remove, &removing))
}

/// Removes what processes left of side journals.
pub fn clean_up(home: &Path) {
    for above in [RUNS, EXEC].map(|folder| home.join(folder)) {
        remove_left(&above, |name| name.starts_with(REMOVING));
        // A process that imports has the lock.
        let lock = private_files::plain(&above.join(IMPORTS), Links::Refuse);
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            remove_imports(&above);
        }
    }
}

/// Another process may be removing it as well.
fn remove_folder(folder: &Path) -> io::Result<()> {
    let removed = match folder.symlink_metadata() {
        Ok(about) if !about.is_dir() => fs::remove_file(folder),
        Ok(_) => fs::remove_dir_all(folder),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
