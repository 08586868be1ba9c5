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

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use spinney::Drivers;
use spinney::tree_file::{FILE_BYTES_MAX, FileError, TreeFile};
use spinney_drivers::scripted::SCRIPT_BYTES_MAX;
use spinney_journal::{Blocking, Journal};
use spinney_kernel::words::{BlobHash, Durability, ModelName, TreeId};

use super::private_files::{self, Links};
use crate::hint::about;
use crate::tree_file::providers::{self, Catalog, Scripted};
use crate::tree_file::source::{self, Parts, Source, Text};

const FOLDER: &str = "trees";
const LIST: &str = "kept.json";
const CHECKSUMS: &str = "checksums";
/// Prefix of a tree's folder until it is complete.
const UNFINISHED: &str = ".unfinished-";
/// Prefix of the empty file that marks a tree whose folders are being made or removed.
const PENDING: &str = ".pending-";
const WORKSPACE: &str = "workspace";
/// Far more models than a tree may have.
const LIST_BYTES_MAX: usize = 1024 * 1024;
const KEPT_BYTES_MAX: usize = {
    let most = if SCRIPT_BYTES_MAX > FILE_BYTES_MAX { SCRIPT_BYTES_MAX } else { FILE_BYTES_MAX };
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

/// What a stored tree is resumed with.
pub(crate) struct Kept {
    pub(crate) drivers: Drivers,
    pub(crate) scripted: Scripted,
}

/// Stores what a tree was started from, all or nothing. Only the process that writes in the home may do this. The
/// tree is marked until [`settle`].
pub(crate) fn keep(home: &Path, tree: TreeId, source: &Source) -> Result<()> {
    mark(home, tree)?;
    let unfinished = named(home, UNFINISHED, tree);
    let durability = source.file.definition.durability;
    let written = private_files::folder(&unfinished)
        .and_then(|()| write(&unfinished, source))
        .and_then(|()| finish(home, tree, durability));
    written.with_context(|| format!("cannot keep the tree file in {}", home.join(FOLDER).display()))
}

/// Stores for a branch what its origin was started from, all or nothing. The branch is marked until [`settle`].
pub(crate) fn copy(home: &Path, from: TreeId, to: TreeId) -> Result<()> {
    mark(home, to)?;
    let unfinished = named(home, UNFINISHED, to);
    let copied = || -> Result<()> {
        private_files::folder(&unfinished)?;
        let from = folder(home, from);
        for (file, text) in unchanged(&from)? {
            private_files::write(&unfinished.join(file), text.as_bytes())?;
        }
        let checksums = source::read_text(&from.join(CHECKSUMS), LIST_BYTES_MAX, Links::Refuse)?;
        private_files::write(&unfinished.join(CHECKSUMS), checksums.as_bytes())?;
        // The branch's durability is in its origin's journal; the strongest one is always safe.
        Ok(finish(home, to, Durability::Full)?)
    };
    copied().with_context(|| format!("cannot keep for a branch what {} keeps", folder(home, from).display()))
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
    private_files::flush(&home.join(FOLDER))?;
    private_files::flush(home)
}

pub(crate) fn mark(home: &Path, tree: TreeId) -> Result<()> {
    let mark = named(home, PENDING, tree);
    let marked = private_files::folder(&home.join(FOLDER)).and_then(|()| private_files::write(&mark, b""));
    match marked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("cannot write {}", mark.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes the folders of a marked tree match the journal, and removes the mark.
fn settle_tree(home: &Path, journal: &dyn Journal, tree: TreeId) -> Result<()> {
    if journal.head(tree).wait()?.is_none() {
        for folder in [home.join(WORKSPACE).join(tree.to_string()), folder(home, tree)] {
            remove(&folder)?;
        }
    }
    remove(&named(home, UNFINISHED, tree))?;
    remove(&named(home, PENDING, tree))
}

/// Settles every marked tree: of this process, or of one that died.
pub(crate) fn settle(home: &Path, journal: &dyn Journal) -> Result<()> {
    let entries = match fs::read_dir(home.join(FOLDER)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?.collect::<io::Result<Vec<_>>>()?,
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
fn remove(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The models and tools of a stored tree. Answers from a script that was changed would be another tree's: what is not
/// as it was when the tree started is refused. A model that its provider answered needs its key again.
pub(crate) fn drivers(home: &Path, tree: TreeId) -> Result<Kept> {
    let folder = folder(home, tree);
    let read = || -> Result<(Kept, Vec<ModelName>, Option<TreeFile>)> {
        let texts = unchanged(&folder)?;
        let text = |file: &str| texts.get(file).ok_or_else(|| anyhow!("`{file}` is not kept"));
        let list: List = serde_json::from_str(text(LIST)?)?;
        let mut scripts = Vec::new();
        let mut places = BTreeMap::new();
        for (file, name) in &list.scripts {
            places.insert(file.as_str(), scripts.len());
            scripts.push(Text { name: name.clone(), text: text(file)?.clone() });
        }
        let part = |(model, file): (&ModelName, &String)| {
            let place = places.get(file.as_str()).copied();
            place.map(|place| (model.clone(), place)).ok_or_else(|| anyhow!("`{file}` is not kept"))
        };
        let parts = list.models.iter().map(part).collect::<Result<Parts>>()?;
        // Its journal has what its agents may call.
        let drivers = source::with_files(source::drivers(&scripts, &parts)?, home, |_| true);
        // Trees of scripts alone are not read again: a newer version may read tree files in a stricter way.
        let file = match list.called.is_empty() {
            true => None,
            false => {
                let text = text(&tree_file(&list.tree_file))?;
                Some(TreeFile::parse_with(&list.tree_file, text, &Catalog::default())?)
            }
        };
        let scripted = list.scripted();
        Ok((Kept { drivers, scripted }, list.called, file))
    };
    let (kept, called, file) = read().with_context(|| {
        let cancel = about(home, "cancel", tree, &[]);
        let kept = folder.display();
        format!("this tree cannot resume from the files in {kept}: restore them, or give up with `{cancel}`")
    })?;
    match file {
        None => Ok(kept),
        Some(file) => {
            let (drivers, errors) = providers::with_models(kept.drivers, &file, &called)?;
            match errors.into_iter().next() {
                Some(error) => Err(FileError::from(error).into()),
                None => Ok(Kept { drivers, ..kept }),
            }
        }
    }
}

/// Which models of a stored tree answer from a file; none if that is no longer known.
pub(crate) fn scripted(home: &Path, tree: TreeId) -> Option<Scripted> {
    let list = source::read_text(&folder(home, tree).join(LIST), LIST_BYTES_MAX, Links::Refuse).ok()?;
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

/// Every stored file of a tree, if none has changed.
fn unchanged(folder: &Path) -> Result<BTreeMap<String, String>> {
    let read = |file: &str, bytes_max| {
        let path = folder.join(file);
        source::read_text(&path, bytes_max, Links::Refuse).with_context(|| format!("cannot read `{file}`"))
    };
    let mut texts = BTreeMap::new();
    for line in read(CHECKSUMS, LIST_BYTES_MAX)?.lines() {
        let wrong = || anyhow!("`{CHECKSUMS}` was changed: `{line}` is no checksum and file name");
        let (checksum, file) = line.split_once("  ").ok_or_else(wrong)?;
        if Path::new(file).file_name().is_none_or(|plain| plain != file) {
            return Err(wrong());
        }
        let text = read(file, KEPT_BYTES_MAX)?;
        if BlobHash::of(text.as_bytes()).as_str() != checksum {
            bail!("`{file}` was changed after the tree started");
        }
        texts.insert(file.to_owned(), text);
    }
    Ok(texts)
}

fn folder(home: &Path, tree: TreeId) -> PathBuf {
    named(home, "", tree)
}

fn named(home: &Path, prefix: &str, tree: TreeId) -> PathBuf {
    home.join(FOLDER).join(format!("{prefix}{tree}"))
}

fn write(folder: &Path, source: &Source) -> io::Result<()> {
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
    use crate::home::private_files::FLUSHED;
    use crate::tree_file::source::Scripts;

    /// The paths that were flushed while the file of such a tree was stored.
    fn flushed(durability: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let (home, file) = (folder.path().join("home"), folder.path().join("tree.yaml"));
        private_files::folder(&home).unwrap();
        fs::write(folder.path().join("s.yaml"), "rules: [{ say: done }]").unwrap();
        let tree = "name: t\ngoal: Go.\nmodels: { m: { provider: scripted, script: s.yaml } }\nagents: { lead: { model: m } }\n";
        fs::write(&file, format!("{tree}durability: {durability}\n")).unwrap();
        let source = source::read(&file, &home, Scripts::Below).unwrap();
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
            [&format!("{UNFINISHED}{tree}"), CHECKSUMS, "home", LIST, "script-1.yaml", "tree.yaml", FOLDER]
        );
        assert_eq!(flushed("normal"), [""; 0]);
    }
}
