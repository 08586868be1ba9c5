//! The folders of side journals below a home, by their names alone. A run that finds the home's own journal in use gets a
//! journal of one tree, and so does every program; branches of that tree are in it as well.
//!
//! ```text
//! <home>/runs/<tree>            a home with the journal of this tree
//! <home>/runs/<branch>          a file: the branch is in the folder that it names
//! <home>/runs/.removing-<tree>  such a home that is being removed
//! <home>/runs/.importing-<tree> such a home whose tree is being imported
//! <home>/runs/.imports          the lock of the process that imports
//! <home>/exec/<tree>            a home of a program, as older releases made them
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use spinney_kernel::primitives::TreeId;
use spinney_store::layout::{EXEC, JOURNAL, RUNS};

use crate::system::private_files::{self, Links};

/// Longer than any id.
const NAME_BYTES_MAX: u64 = 64;

/// A tree with the side journal that it is in, as far as names tell: it may not have begun, or may be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideTree {
    /// The tree.
    pub tree: TreeId,
    /// The folder of its side journal.
    pub folder: PathBuf,
}

/// Where the side journal of a new tree is.
pub fn new_folder(home: &Path, tree: TreeId) -> PathBuf {
    home.join(RUNS).join(tree.to_string())
}

/// The tree that a side journal was made for; none for any other home.
pub fn side_tree(home: &Path) -> Option<TreeId> {
    let above = home.parent()?.file_name()?;
    let tree = home.file_name()?.to_str()?.parse().ok()?;
    (above == RUNS || above == EXEC).then_some(tree)
}

/// Whether a side journal is the one of a program, as older releases made them.
pub fn is_in_exec(home: &Path) -> bool {
    side_tree(home).is_some() && home.parent().and_then(Path::file_name).is_some_and(|above| above == EXEC)
}

/// Whether there is a journal in a folder.
pub fn has_journal(home: &Path) -> bool {
    home.join(JOURNAL).exists()
}

/// Whether a home has ever had a side journal.
pub fn has_any(home: &Path) -> bool {
    [RUNS, EXEC].iter().any(|folder| home.join(folder).is_dir())
}

/// The home that a side journal is below; any other home itself.
pub fn above(home: &Path) -> &Path {
    let above = side_tree(home).and_then(|_| home.parent()?.parent());
    above.unwrap_or(home)
}

/// The side journals of a home, each with the tree that it was made for, oldest first.
pub fn folders(home: &Path) -> Vec<SideTree> {
    found(home).into_iter().filter(|(_, found)| found.kind == Kind::Folder).map(side).collect()
}

/// All trees in side journals, with branches, oldest first.
pub fn trees(home: &Path) -> Vec<SideTree> {
    found(home).into_iter().filter_map(resolved).map(side).collect()
}

/// The branches that are in a side journal, by their files beside it.
pub fn branches(folder: &Path) -> Vec<SideTree> {
    let all = trees(above(folder)).into_iter();
    all.filter(|side| side.folder == folder && Some(side.tree) != side_tree(folder)).collect()
}

/// The file that says where a branch is.
pub(crate) fn branch_file(folder: &Path, branch: TreeId) -> Option<PathBuf> {
    side_tree(folder)?;
    Some(folder.parent()?.join(branch.to_string()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    Branch,
}

struct SideFolder {
    path: PathBuf,
    kind: Kind,
}

fn side((tree, SideFolder { path, .. }): (TreeId, SideFolder)) -> SideTree {
    SideTree { tree, folder: path }
}

/// What has the name of a tree. A link is not ours.
fn found(home: &Path) -> BTreeMap<TreeId, SideFolder> {
    let mut all = BTreeMap::new();
    for above in [RUNS, EXEC].map(|folder| home.join(folder)) {
        let Ok(entries) = fs::read_dir(&above) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let Some(tree) = entry.file_name().to_str().and_then(|name| name.parse::<TreeId>().ok()) else {
                continue;
            };
            let kind = match entry.file_type() {
                Ok(kind) if kind.is_dir() => Kind::Folder,
                Ok(kind) if kind.is_file() => Kind::Branch,
                Ok(_) | Err(_) => continue,
            };
            all.entry(tree).or_insert_with(|| SideFolder { path: entry.path(), kind });
        }
    }
    all
}

/// A branch by the folder that it is in.
fn resolved((tree, found): (TreeId, SideFolder)) -> Option<(TreeId, SideFolder)> {
    if found.kind == Kind::Folder {
        return Some((tree, found));
    }
    let mut name = String::new();
    let file = private_files::plain(&found.path, Links::Refuse).ok()?;
    file.take(NAME_BYTES_MAX).read_to_string(&mut name).ok()?;
    let origin: TreeId = name.trim_end().parse().ok()?;
    let path = found.path.parent()?.join(origin.to_string());
    Some((tree, SideFolder { path, kind: Kind::Branch }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "01a1e5e1a78a4c0e8d7f0123456789ab";
    const OLD: &str = "01a1e5e1a78a4c0e8d7f0123456789aa";
    const BRANCH: &str = "01a1e5e1a78a4c0e8d7f0123456789ac";

    #[test]
    fn trees_are_found_in_both_folders_and_branches_in_their_origins() {
        let home = tempfile::tempdir().unwrap();
        let (new, old) = (home.path().join("runs").join(TREE), home.path().join("exec").join(OLD));
        for folder in [&new, &old] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(home.path().join("runs").join(BRANCH), format!("{TREE}\n")).unwrap();
        fs::create_dir(home.path().join("runs/.removing-1")).unwrap();
        std::os::unix::fs::symlink("/", home.path().join("runs/01a1e5e1a78a4c0e8d7f0123456789ad")).unwrap();
        let side =
            |tree: &str, folder: &Path| SideTree { tree: tree.parse().unwrap(), folder: folder.to_owned() };
        assert_eq!(folders(home.path()), [side(OLD, &old), side(TREE, &new)]);
        assert_eq!(trees(home.path()), [side(OLD, &old), side(TREE, &new), side(BRANCH, &new)]);
        assert_eq!(branches(&new), [side(BRANCH, &new)]);
        assert_eq!(above(&new), home.path());
        assert_eq!((is_in_exec(&old), is_in_exec(&new)), (true, false));
        assert_eq!(side_tree(home.path()), None);
    }

    #[test]
    fn a_branch_file_names_nothing_outside() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("runs")).unwrap();
        for hostile in ["../../etc", "", "/", &"0".repeat(1_000)] {
            fs::write(home.path().join("runs").join(BRANCH), hostile).unwrap();
            assert_eq!(trees(home.path()), [], "{hostile}");
        }
    }
}
