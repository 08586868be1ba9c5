//! The folders of runs below a home, by their names alone: each run of a program has a home of its own, named after its
//! only tree.

use std::fs;
use std::path::{Path, PathBuf};

use spinney_kernel::words::TreeId;
use spinney_store::layout::{EXEC, JOURNAL};

/// The home of a run.
pub fn home_of(home: &Path, tree: TreeId) -> PathBuf {
    home.join(EXEC).join(tree.to_string())
}

/// Whether a home is the one of a run: then `spinney exec` continues its tree.
pub fn is_of_exec(home: &Path) -> bool {
    let is_tree =
        home.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.parse::<TreeId>().is_ok());
    is_tree && home.parent().and_then(Path::file_name).is_some_and(|name| name == EXEC)
}

/// Whether a home has trees of its own.
pub fn has_journal(home: &Path) -> bool {
    home.join(JOURNAL).exists()
}

/// Whether `exec` has been used in a home.
pub fn has_folder(home: &Path) -> bool {
    home.join(EXEC).is_dir()
}

/// The home that a run's home is below; any other home itself.
pub fn above(home: &Path) -> &Path {
    let above = home.parent().and_then(Path::parent).filter(|_| is_of_exec(home));
    above.unwrap_or(home)
}

/// The trees that `spinney exec` started in a home, oldest first.
pub fn trees(home: &Path) -> Vec<TreeId> {
    let Ok(entries) = fs::read_dir(home.join(EXEC)) else { return Vec::new() };
    let tree = |name: &str| name.parse::<TreeId>().ok();
    let mut trees: Vec<TreeId> =
        entries.filter_map(|entry| tree(entry.ok()?.file_name().to_str()?)).collect();
    trees.sort_unstable();
    trees
}
