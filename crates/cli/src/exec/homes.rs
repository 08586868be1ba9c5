//! The homes below a home: each `spinney exec` has one of its own, so that several run side by side in one folder. It is
//! named after its only tree, and every command that names a tree finds it.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use spinney_journal::{Blocking, Journal};
use spinney_kernel::words::TreeId;
use spinney_store::SqliteJournal;

use crate::{hint, home};

/// The folder of these homes.
const FOLDER: &str = "exec";
/// The file of a home's journal.
pub(crate) const JOURNAL: &str = "journal.sqlite3";
/// Most homes that an error lists.
const LISTED_MAX: usize = 8;

/// The home of a run.
pub(crate) fn home_of(home: &Path, tree: TreeId) -> PathBuf {
    home.join(FOLDER).join(tree.to_string())
}

/// Makes the folders above the home of a run: for their owner only, and in a home of ours.
pub(crate) fn make(home: &Path) -> Result<()> {
    let what = || format!("cannot open {} (use --home for another one)", home.display());
    SqliteJournal::prepare_folder(home).with_context(what)?;
    let folder = home.join(FOLDER);
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => made.with_context(|| format!("cannot create {}", folder.display()))?,
    }
    if !fs::symlink_metadata(&folder)?.is_dir() {
        bail!("{} is no folder of ours: move it away, or choose another home", folder.display());
    }
    Ok(())
}

/// Whether a home is the one of a run: then `spinney exec` continues its tree.
pub(crate) fn is_of_exec(home: &Path) -> bool {
    let is_tree =
        home.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.parse::<TreeId>().is_ok());
    is_tree && home.parent().and_then(Path::file_name).is_some_and(|name| name == FOLDER)
}

/// Whether a home has trees of its own.
pub(crate) fn has_journal(home: &Path) -> bool {
    home.join(JOURNAL).exists()
}

/// Whether `exec` has been used in a home.
pub(crate) fn has_folder(home: &Path) -> bool {
    home.join(FOLDER).is_dir()
}

/// The home that a run's home is below; any other home itself.
pub(crate) fn above(home: &Path) -> &Path {
    let above = home.parent().and_then(Path::parent).filter(|_| is_of_exec(home));
    above.unwrap_or(home)
}

/// The trees that `spinney exec` started in a home, oldest first.
pub(crate) fn trees(home: &Path) -> Vec<TreeId> {
    let Ok(entries) = fs::read_dir(home.join(FOLDER)) else { return Vec::new() };
    let tree = |name: &str| name.parse::<TreeId>().ok();
    let mut trees: Vec<TreeId> =
        entries.filter_map(|entry| tree(entry.ok()?.file_name().to_str()?)).collect();
    trees.sort_unstable();
    trees
}

/// The home that has the tree which `id` names: the given one, or one below it.
pub(crate) fn find(home: &Path, id: &str) -> Result<PathBuf> {
    let runs = trees(home);
    if runs.is_empty() {
        return Ok(home.to_owned());
    }
    let own: Vec<TreeId> = match home::look(home) {
        Ok(journal) => journal.heads(&[]).wait()?.into_iter().map(|head| head.tree).collect(),
        // A home without a journal of its own has only these.
        Err(_) => Vec::new(),
    };
    let wanted = id.to_ascii_lowercase();
    if wanted == "last" {
        // Ids begin with the time of their start.
        let newest = runs.last().filter(|newest| own.last().is_none_or(|own| own < *newest));
        return Ok(newest.map_or_else(|| home.to_owned(), |newest| home_of(home, *newest)));
    }
    let is_meant = |tree: &&TreeId| tree.to_string().starts_with(&wanted);
    let found: Vec<&TreeId> = runs.iter().filter(is_meant).collect();
    match (found.as_slice(), own.iter().filter(is_meant).count()) {
        // No journal there could say that it has no such tree.
        ([], 0) if !has_journal(home) => {
            bail!("no tree starts with `{id}`: `{}` lists all trees", hint::command(home, &["ps"]))
        }
        ([], _) => Ok(home.to_owned()),
        ([one], 0) => Ok(home_of(home, **one)),
        (several, others) => {
            let listed: Vec<String> =
                several.iter().take(LISTED_MAX).map(|tree| format!("\n  {tree}")).collect();
            bail!(
                "{} trees start with `{id}`: use more characters{}",
                several.len() + others,
                listed.concat()
            )
        }
    }
}
