//! What a box must keep from a command in the folders of the user: what is hidden, what is only read, and the names that must
//! not come to be. Only a box with namespaces can (decision 0062).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt as _;
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, statat};
use rustix::process::geteuid;
use spinney_kernel::port::{FolderAccess, Rights};

use crate::folders::{HiddenFolders, PROTECTED, check_folder, git_paths, is_protected, open_folder};
use crate::sandbox::is_reserved;

/// The name of a home beside what it was made for.
const HOME: &str = ".spinney";
/// How many folders below a granted one are searched for what is only read, and how much is looked at.
const DEPTH_MAX: u32 = 3;
const ENTRIES_MAX: usize = 100_000;
/// The most paths that are kept from one command. Each is a mount.
const COVERS_MAX: usize = 512;

/// The paths of one agent's folders that its commands do not have as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FolderCovers {
    pub(super) hidden: Vec<PathBuf>,
    pub(super) read_only: Vec<PathBuf>,
    pub(super) reserved: Vec<PathBuf>,
}

impl FolderCovers {
    /// Those of an agent with these rights, as its folders are now. An error says why a command cannot have one of them.
    pub(crate) fn new(rights: &Rights, hidden: &HiddenFolders) -> Result<Self, String> {
        let mut covers = Self::default();
        let mut read_only = BTreeSet::new();
        for folder in &rights.folders {
            let path = folder.path.as_path();
            let said = |why: &dyn std::fmt::Display| format!("the folder {} {why}", path.display());
            check_folder(path, folder.access, hidden).map_err(|problem| said(&problem))?;
            covers.hidden.extend(hidden.below(path).cloned());
            if folder.access == FolderAccess::Write {
                let opened = open_folder(path).map_err(|error| said(&error))?;
                covers.reserve(&opened, path, &mut read_only)?;
                covers.reserved.extend(hidden.below(path).filter_map(|hidden| first_missing(hidden, path)));
                let mut search = Search { hidden, entries: 0, found: &mut read_only };
                search.below(&opened, path, DEPTH_MAX).map_err(|error| said(&error))?;
                let used_by_git = git_paths(path).into_iter();
                read_only.extend(used_by_git.filter(|used| is_written(rights, used)));
            }
        }
        // A folder that may be written as a whole has nothing in it that is kept.
        read_only.retain(|path| !rights.folders.iter().any(|folder| folder.path == *path));
        // A home that may only be read still has a socket.
        let (homes, read_only): (Vec<_>, Vec<_>) = read_only.into_iter().partition(|path| is_home(path));
        covers.hidden.extend(homes);
        covers.read_only = read_only;
        let count = covers.read_only.len() + covers.reserved.len() + covers.hidden.len();
        if count > COVERS_MAX {
            return Err(format!(
                "{count} paths in your folders would have to be kept read-only, more than {COVERS_MAX}: a person has to grant a smaller folder"
            ));
        }
        Ok(covers)
    }

    /// What is hidden, what is only read, and what must not be made.
    #[cfg(feature = "mcp")]
    pub(crate) fn into_parts(self) -> (Vec<PathBuf>, Vec<PathBuf>, Vec<PathBuf>) {
        (self.hidden, self.read_only, self.reserved)
    }

    /// Whether commands with these rights need a box that can keep something from them.
    pub(super) fn are_needed(rights: &Rights, hidden: &HiddenFolders) -> bool {
        let needs =
            |path: &Path, access| access == FolderAccess::Write || hidden.below(path).next().is_some();
        rights.folders.iter().any(|folder| needs(&folder.path, folder.access))
    }

    /// The protected names of a granted folder itself: what exists is only read, and the others cannot be made.
    fn reserve(
        &mut self,
        folder: &Dir,
        path: &Path,
        read_only: &mut BTreeSet<PathBuf>,
    ) -> Result<(), String> {
        for name in PROTECTED {
            let at = path.join(name);
            match folder.symlink_metadata(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => self.reserved.push(at),
                Err(error) => return Err(format!("{} cannot be looked at: {error}", at.display())),
                // A box protects what is mounted, and nothing is mounted on a link.
                Ok(found) if found.is_symlink() => {
                    return Err(format!(
                        "{} is a link, so it cannot be kept read-only: a person has to replace it",
                        at.display()
                    ));
                }
                Ok(_) if is_reserved(folder, OsStr::new(name)) => self.reserved.push(at),
                Ok(_) => {
                    read_only.insert(at);
                }
            }
        }
        Ok(())
    }
}

/// What is hidden from a program in a folder that it may read: what always is, and homes of trees, whose sockets a read-only
/// folder would not close.
pub(super) fn hidden_below(folder: &Path, hidden: &HiddenFolders) -> Result<Vec<PathBuf>, String> {
    let said = |error: io::Error| format!("the folder {} {error}", folder.display());
    let mut found = BTreeSet::new();
    let opened = open_folder(folder).map_err(said)?;
    let mut search = Search { hidden, entries: 0, found: &mut found };
    search.below(&opened, folder, DEPTH_MAX).map_err(said)?;
    Ok(hidden.below(folder).cloned().chain(found.into_iter().filter(|path| is_home(path))).collect())
}

/// Whether a path has the name of a home.
pub(super) fn is_home(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == HOME)
}

/// The uppermost part of a path below a folder that does not exist: what would be hidden must not be made either.
fn first_missing(path: &Path, folder: &Path) -> Option<PathBuf> {
    let below = path.ancestors().take_while(|above| *above != folder);
    below.filter(|above| above.symlink_metadata().is_err()).last().map(Path::to_owned)
}

fn is_written(rights: &Rights, path: &Path) -> bool {
    rights.access(path) == Some(FolderAccess::Write)
}

/// What exists below a granted folder under protected names.
struct Search<'a> {
    hidden: &'a HiddenFolders,
    entries: usize,
    found: &'a mut BTreeSet<PathBuf>,
}

impl Search<'_> {
    fn below(&mut self, folder: &Dir, path: &Path, depth: u32) -> io::Result<()> {
        for entry in folder.entries()? {
            let entry = entry?;
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                let many = "has too many files to find what is only to be read: grant a smaller one";
                return Err(io::Error::other(many));
            }
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            let at = path.join(&name);
            if kind.is_symlink() || self.hidden.contain(&at) {
                continue;
            }
            if is_protected(&name) {
                if !is_reserved(folder, &name) {
                    self.found.insert(at);
                }
            } else if kind.is_dir() && depth > 0 {
                let searched =
                    folder.open_dir_nofollow(&name).and_then(|below| self.below(&below, &at, depth - 1));
                match searched {
                    Err(error) if is_out_of_reach(folder, &name, &error) => {}
                    searched => searched?,
                }
            }
        }
        Ok(())
    }
}

/// Whether a folder is gone, or is another user's and closed: then a command cannot open it either. One of the user's own
/// could be opened again by the command that closed it.
pub(super) fn is_out_of_reach(folder: &Dir, name: &OsStr, error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => true,
        io::ErrorKind::PermissionDenied => {
            let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
            found.is_ok_and(|found| found.st_uid != geteuid().as_raw())
        }
        _ => false,
    }
}
