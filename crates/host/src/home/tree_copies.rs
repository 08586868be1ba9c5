//! What a home keeps beside the journal: each tree's file and scripts as they were when it started, so that it can be
//! resumed from anywhere, and later edits do not change it.
//!
//! ```text
//! <home>/trees/<tree>/kept.json        which model answers from which script, and which one its provider answers
//!                     tree.yaml        the tree file, in its own format
//!                     script-1.yaml …  the scripts
//!                     checksums        the hash of each file, as `b3sum --check` reads it
//! <home>/trees/.pending-<tree>         the folders of this tree are being made or removed
//! ```
//!
//! A process may die between writing a tree's folders and its journal. So each tree is marked before its folders are
//! made or removed, until both agree. The next process that writes in the home settles marked trees only: if the
//! journal has the tree its folders stay, otherwise they are removed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spinney::Drivers;
use spinney::tree_file::{FILE_BYTES_MAX, FileError, TreeFile};
use spinney_drivers::http::HttpSetupError;
use spinney_drivers::scripted::SCRIPT_BYTES_MAX;
use spinney_journal::{Blocking, Journal, JournalFault};
use spinney_kernel::words::{BlobHash, Durability, ModelName, TreeId};
use spinney_store::layout::{TREES, WORKSPACES};

use crate::own_drivers::OwnDrivers;
use crate::private_files::{self, Links};
use crate::text_file::{self, FileAction, FileFault, UnreadText};
use crate::tree_file::providers::{self, Catalog, Scripted};
use crate::tree_file::source::{self, Parts, SourceDriversError, Text, TreeSource};
use crate::user::variables::Variables;

const LIST: &str = "kept.json";
const CHECKSUMS: &str = "checksums";
/// Prefix of a tree's folder until it is complete.
const UNFINISHED: &str = ".unfinished-";
/// Prefix of the empty file that marks a tree whose folders are being made or removed.
const PENDING: &str = ".pending-";
/// Far more models than a tree may have.
const LIST_BYTES_MAX: u64 = 1024 * 1024;
const KEPT_BYTES_MAX: u64 = {
    let most = if SCRIPT_BYTES_MAX > FILE_BYTES_MAX { SCRIPT_BYTES_MAX } else { FILE_BYTES_MAX } as u64;
    if most > LIST_BYTES_MAX { most } else { LIST_BYTES_MAX }
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// The tree file's original name.
    tree_file: String,
    /// The scripts' files, with their original names.
    scripts: BTreeMap<String, String>,
    /// The script of each model.
    models: BTreeMap<ModelName, String>,
    /// The models that their providers answer. How they are asked is in the tree file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    called: Vec<ModelName>,
}

/// Why what a tree was started from cannot be kept or removed.
#[derive(Debug, thiserror::Error)]
pub enum TreeCopyError {
    /// A file of it failed.
    #[error(transparent)]
    File(#[from] FileFault),
    /// It cannot be written.
    #[error("cannot keep the tree file in {}", folder.display())]
    Unkept {
        /// Where.
        folder: PathBuf,
        /// Why not.
        #[source]
        why: io::Error,
    },
    /// It cannot be copied for a branch.
    #[error("cannot keep for a branch what {} keeps", folder.display())]
    Uncopied {
        /// From where.
        folder: PathBuf,
        /// Why not.
        #[source]
        why: ChangedCopy,
    },
    /// The journal does not say whether the tree exists.
    #[error(transparent)]
    Journal(#[from] JournalFault),
}

/// Files from which a tree cannot be resumed.
#[derive(Debug, thiserror::Error)]
#[error("this tree cannot resume from the files in {}: restore them", folder.display())]
pub struct UnreadCopy {
    /// The home.
    pub home: PathBuf,
    /// The tree.
    pub tree: TreeId,
    /// Where they lie.
    pub folder: PathBuf,
    /// What is wrong.
    #[source]
    pub why: Box<ChangedCopy>,
}

/// What is wrong with kept files.
#[derive(Debug, thiserror::Error)]
pub enum ChangedCopy {
    /// One cannot be read.
    #[error("cannot read `{file}`")]
    Unread {
        /// Which.
        file: String,
        /// Why not.
        #[source]
        why: UnreadText,
    },
    /// The list of checksums is not one.
    #[error("`{CHECKSUMS}` was changed: `{line}` is not a checksum and a file name")]
    Checksums {
        /// Its line.
        line: String,
    },
    /// One is not as it was.
    #[error("`{file}` was changed after the tree started")]
    Changed {
        /// Which.
        file: String,
    },
    /// One is missing.
    #[error("`{file}` is not kept")]
    Missing {
        /// Which.
        file: String,
    },
    /// The list of files is not one.
    #[error(transparent)]
    List(#[from] serde_json::Error),
    /// The tree file is wrong.
    #[error(transparent)]
    TreeFile(#[from] FileError),
    /// The scripts are wrong.
    #[error(transparent)]
    Scripts(#[from] SourceDriversError),
    /// A file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Why the models of a stored tree cannot be called.
#[derive(Debug, thiserror::Error)]
pub enum KeptDriversError {
    /// A key is missing, or the file is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// Providers cannot be called from here.
    #[error(transparent)]
    Http(#[from] HttpSetupError),
}

/// What a stored tree is resumed with.
pub struct Kept {
    /// Which of its models answer from scripts.
    pub scripted: Scripted,
    /// The tree file, if its providers are called.
    pub called: Option<CalledFile>,
    /// The hash of all that was read.
    pub source: Option<BlobHash>,
    /// Those that answer from scripts.
    drivers: Drivers,
}

/// A tree file whose models are called.
pub struct CalledFile {
    /// The file.
    pub file: TreeFile,
    /// Its text.
    pub text: Text,
    /// The models that are called.
    pub models: Vec<ModelName>,
}

impl Kept {
    /// The models and tools of the tree. A model that its provider answered needs its key again.
    pub fn drivers(self, user: &Variables) -> Result<Drivers, KeptDriversError> {
        self.drivers_beside(user, &OwnDrivers::default())
    }

    /// The same in a program that brings some of its models itself.
    pub fn drivers_beside(self, user: &Variables, own: &OwnDrivers) -> Result<Drivers, KeptDriversError> {
        let Some(CalledFile { file, models, .. }) = self.called else { return Ok(self.drivers) };
        let models: Vec<ModelName> = models.into_iter().filter(|model| !own.has_model(model)).collect();
        let (drivers, errors) = providers::with_models(self.drivers, &file, &models, user)?;
        match errors.into_iter().next() {
            Some(error) => Err(FileError::from(error).into()),
            None => Ok(drivers),
        }
    }
}

/// Stores what a tree was started from, all or nothing. Only the process that writes in the home may do this. The
/// tree is marked until [`settle`].
pub fn keep(home: &Path, tree: TreeId, source: &TreeSource) -> Result<(), TreeCopyError> {
    mark(home, tree)?;
    let unfinished = named(home, UNFINISHED, tree);
    let durability = source.file.definition.durability;
    let written = private_files::folder(&unfinished)
        .and_then(|()| write(&unfinished, source))
        .and_then(|()| finish(home, tree, durability));
    written.map_err(|why| TreeCopyError::Unkept { folder: home.join(TREES), why })
}

/// Stores for a branch what its origin was started from, all or nothing. The branch is marked until [`settle`].
pub fn copy(home: &Path, from: TreeId, to: TreeId) -> Result<(), TreeCopyError> {
    mark(home, to)?;
    let unfinished = named(home, UNFINISHED, to);
    let copied = || -> Result<(), ChangedCopy> {
        private_files::folder(&unfinished)?;
        let from = folder(home, from);
        for (file, text) in unchanged(&from)?.texts {
            private_files::write(&unfinished.join(file), text.as_bytes())?;
        }
        let checksums = read_kept(&from, CHECKSUMS, LIST_BYTES_MAX)?;
        private_files::write(&unfinished.join(CHECKSUMS), checksums.as_bytes())?;
        // The branch's durability is in its origin's journal; the strongest one is always safe.
        Ok(finish(home, to, Durability::Full)?)
    };
    copied().map_err(|why| TreeCopyError::Uncopied { folder: folder(home, from), why })
}

/// Renames a complete folder to its final name. A tree that survives a loss of power can be resumed after one, so its
/// folder must be on disk before the tree starts.
fn finish(home: &Path, tree: TreeId, durability: Durability) -> io::Result<()> {
    let (unfinished, kept) = (named(home, UNFINISHED, tree), folder(home, tree));
    if durability != Durability::Full {
        return fs::rename(unfinished, kept);
    }
    private_files::flush_all(&unfinished)?;
    fs::rename(unfinished, kept)?;
    private_files::flush(&home.join(TREES))?;
    private_files::flush(home)
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
pub fn settle_tree(home: &Path, journal: &dyn Journal, tree: TreeId) -> Result<(), TreeCopyError> {
    if journal.head(tree).wait()?.is_none() {
        for folder in [home.join(WORKSPACES).join(tree.to_string()), folder(home, tree)] {
            remove(&folder)?;
        }
    }
    remove(&named(home, UNFINISHED, tree))?;
    Ok(remove(&named(home, PENDING, tree))?)
}

/// Settles every marked tree: of this process, or of one that died.
pub fn settle(home: &Path, journal: &dyn Journal) -> Result<(), TreeCopyError> {
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
            settled = settled.and(settle_tree(home, journal, tree));
        }
    }
    settled
}

/// Removes a file, or a folder with its content. Does not follow links.
fn remove(path: &Path) -> Result<(), FileFault> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
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

/// What a stored tree is resumed with. Answers from a script that was changed would be another tree's: what is not as it
/// was when the tree started is refused.
pub fn read(home: &Path, tree: TreeId) -> Result<Kept, UnreadCopy> {
    let folder = folder(home, tree);
    let read = || -> Result<Kept, ChangedCopy> {
        let Unchanged { texts, source } = unchanged(&folder)?;
        let text = |file: &str| texts.get(file).ok_or_else(|| ChangedCopy::Missing { file: file.to_owned() });
        let list: List = serde_json::from_str(text(LIST)?)?;
        let mut scripts = Vec::new();
        let mut places = BTreeMap::new();
        for (file, name) in &list.scripts {
            places.insert(file.as_str(), scripts.len());
            scripts.push(Text { name: name.clone(), text: text(file)?.clone() });
        }
        let part = |(model, file): (&ModelName, &String)| {
            let place = places.get(file.as_str()).copied();
            place
                .map(|place| (model.clone(), place))
                .ok_or_else(|| ChangedCopy::Missing { file: file.clone() })
        };
        let parts = list.models.iter().map(part).collect::<Result<Parts, ChangedCopy>>()?;
        // Its journal has what its agents may call.
        let drivers = source::with_files(source::drivers(&scripts, &parts)?, home, |_| true);
        // Trees of scripts alone are not read again: a newer version may read tree files in a stricter way.
        let called = match list.called.is_empty() {
            true => None,
            false => {
                let text = text(&tree_file(&list.tree_file))?.clone();
                let file = TreeFile::parse_with(&list.tree_file, &text, &Catalog::default())?;
                let text = Text { name: list.tree_file.clone(), text };
                Some(CalledFile { file, text, models: list.called.clone() })
            }
        };
        Ok(Kept { scripted: list.scripted(), called, source: Some(source), drivers })
    };
    read().map_err(|why| UnreadCopy {
        home: home.to_owned(),
        tree,
        folder: folder.clone(),
        why: Box::new(why),
    })
}

/// The hash of what a tree is started from. None if nothing is kept.
pub fn fingerprint(home: &Path, tree: TreeId) -> Result<Option<BlobHash>, FileFault> {
    let path = folder(home, tree).join(CHECKSUMS);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let checksums = text_file::read(&path, LIST_BYTES_MAX, Links::Refuse)
        .map_err(FileFault::when(FileAction::Read, &path))?;
    Ok(Some(BlobHash::of(checksums.as_bytes())))
}

/// Which models of a stored tree answer from a file; none if that is no longer known.
pub fn scripted(home: &Path, tree: TreeId) -> Option<Scripted> {
    let list = text_file::read(&folder(home, tree).join(LIST), LIST_BYTES_MAX, Links::Refuse).ok()?;
    Some(serde_json::from_str::<List>(&list).ok()?.scripted())
}

impl List {
    fn scripted(&self) -> Scripted {
        Scripted::new(self.models.keys().cloned().collect(), &self.called)
    }
}

/// The file name of a tree file's copy: its extension is that of the format.
fn tree_file(name: &str) -> String {
    let ending = Path::new(name).extension().unwrap_or_default().to_string_lossy();
    format!("tree.{}", ending.to_ascii_lowercase())
}

/// Every stored file of a tree, with the hash of all.
struct Unchanged {
    texts: BTreeMap<String, String>,
    source: BlobHash,
}

/// The stored files of a tree, if none has changed.
fn unchanged(folder: &Path) -> Result<Unchanged, ChangedCopy> {
    let mut texts = BTreeMap::new();
    let checksums = read_kept(folder, CHECKSUMS, LIST_BYTES_MAX)?;
    for line in checksums.lines() {
        let wrong = || ChangedCopy::Checksums { line: line.to_owned() };
        let (checksum, file) = line.split_once("  ").ok_or_else(wrong)?;
        if Path::new(file).file_name().is_none_or(|plain| plain != file) {
            return Err(wrong());
        }
        let text = read_kept(folder, file, KEPT_BYTES_MAX)?;
        if BlobHash::of(text.as_bytes()).as_str() != checksum {
            return Err(ChangedCopy::Changed { file: file.to_owned() });
        }
        texts.insert(file.to_owned(), text);
    }
    Ok(Unchanged { texts, source: BlobHash::of(checksums.as_bytes()) })
}

fn read_kept(folder: &Path, file: &str, bytes_max: u64) -> Result<String, ChangedCopy> {
    text_file::read(&folder.join(file), bytes_max, Links::Refuse)
        .map_err(|why| ChangedCopy::Unread { file: file.to_owned(), why })
}

fn folder(home: &Path, tree: TreeId) -> PathBuf {
    named(home, "", tree)
}

fn named(home: &Path, prefix: &str, tree: TreeId) -> PathBuf {
    home.join(TREES).join(format!("{prefix}{tree}"))
}

fn write(folder: &Path, source: &TreeSource) -> io::Result<()> {
    let mut checksums = String::new();
    let mut put = |file: &str, text: &str| {
        checksums += &format!("{}  {file}\n", BlobHash::of(text.as_bytes()));
        private_files::write(&folder.join(file), text.as_bytes())
    };
    put(&tree_file(&source.text.name), &source.text.text)?;
    let file = |place: usize| format!("script-{}.yaml", place + 1);
    let mut scripts = BTreeMap::new();
    for (place, Text { name, text }) in source.scripts.iter().enumerate() {
        put(&file(place), text)?;
        scripts.insert(file(place), name.clone());
    }
    let models = source.parts.iter().map(|(model, place)| (model.clone(), file(*place))).collect();
    let tree_file = source::plain(Path::new(&source.text.name));
    let list = List { tree_file, scripts, models, called: source.called.clone() };
    put(LIST, &(serde_json::to_string_pretty(&list)? + "\n"))?;
    private_files::write(&folder.join(CHECKSUMS), checksums.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_files::FLUSHED;
    use crate::tree_file::source::Scripts;

    /// The paths that were flushed while the file of such a tree was stored.
    fn flushed(durability: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let (home, file) = (folder.path().join("home"), folder.path().join("tree.yaml"));
        private_files::folder(&home).unwrap();
        fs::write(folder.path().join("s.yaml"), "rules: [{ say: done }]").unwrap();
        let tree = "name: t\ngoal: Go.\nmodels: { m: { provider: scripted, script: s.yaml } }\nagents: { lead: { model: m } }\n";
        fs::write(&file, format!("{tree}durability: {durability}\n")).unwrap();
        let source = source::read(
            &file,
            &home,
            Scripts::Below { allow: "" },
            &Variables::default(),
            &OwnDrivers::default(),
        )
        .unwrap();
        FLUSHED.take();
        keep(&home, TreeId::new([7; 16]), &source).unwrap();
        let mut names: Vec<String> = FLUSHED.take().iter().map(|path| source::plain(path)).collect();
        names.sort();
        names
    }

    #[test]
    fn with_full_durability_the_kept_files_are_on_the_disk_before_the_tree_starts() {
        let tree = TreeId::new([7; 16]);
        assert_eq!(
            flushed("full"),
            [&format!("{UNFINISHED}{tree}"), CHECKSUMS, "home", LIST, "script-1.yaml", "tree.yaml", TREES]
        );
        assert_eq!(flushed("normal"), [""; 0]);
    }
}
