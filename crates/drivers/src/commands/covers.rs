//! What a box must keep from a command in the folders of the user: what is hidden, what is only read, and the names that must
//! not come to be. Only a box with namespaces can (decision 0062).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, Metadata, MetadataExt as _};
use rustix::fs::{AtFlags, statat};
use rustix::process::geteuid;
use spinney_kernel::port::{FolderAccess, Rights};

use super::folder_sockets::sockets_in;
use crate::folders::{
    GitPaths, HiddenFolders, PROTECTED, REPOSITORY, RepositoryNames, check_folder, is_protected, open_folder,
};
use crate::sandbox::is_reserved;

/// The name of a home beside what it was made for.
const HOME: &str = ".spinney";
/// How many folders below a granted one are searched for what is only read, and how much is looked at.
const DEPTH_MAX: u32 = 3;
const ENTRIES_MAX: usize = 100_000;
/// Files of something that is only read that are looked at for second names.
const SECOND_NAMES_MAX: usize = 1_000;
/// The most paths that are kept from one command. Each is a mount.
const COVERS_MAX: usize = 1_024;

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
                covers.keep_for_git(path, rights, hidden, &mut read_only)?;
            }
        }
        // A folder that may be written as a whole has nothing in it that is kept.
        read_only.retain(|path| !rights.folders.iter().any(|folder| folder.path == *path));
        // A home that may only be read still has a socket.
        let (homes, read_only): (Vec<_>, Vec<_>) = read_only.into_iter().partition(|path| is_home(path));
        covers.hidden.extend(homes);
        covers.read_only = read_only;
        covers.reserved.sort_unstable();
        covers.reserved.dedup();
        let count = covers.read_only.len() + covers.reserved.len() + covers.hidden.len();
        if count > COVERS_MAX {
            return Err(format!(
                "{count} paths in your folders would have to be kept read-only, more than {COVERS_MAX}: a person has to grant a smaller folder"
            ));
        }
        Ok(covers)
    }

    /// What git uses elsewhere in a folder, because of it and of repositories that were found in it.
    fn keep_for_git(
        &mut self,
        folder: &Path,
        rights: &Rights,
        hidden: &HiddenFolders,
        read_only: &mut BTreeSet<PathBuf>,
    ) -> Result<(), String> {
        let git = hidden.git();
        let below = read_only.iter().filter(|path| path.starts_with(folder) && path.ends_with(REPOSITORY));
        let tops: BTreeSet<&Path> = below.filter_map(|repository| repository.parent()).collect();
        let found: Vec<GitPaths> = tops
            .into_iter()
            .map(|top| GitPaths::of(top, git))
            .chain([GitPaths::around(folder, git)])
            .collect();
        for used in &found {
            read_only.extend(used.existing.iter().filter(|used| is_written(rights, used)).cloned());
        }
        // What is above a folder that may be written cannot be made in it, and what is kept as a whole takes nothing.
        let can_be_made = |used: &&PathBuf| {
            let is_kept = used.ancestors().any(|above| read_only.contains(above));
            is_written(rights, used) && used.starts_with(folder) && !is_kept
        };
        for used in &found {
            if let Some(missing) = used.missing_configurations.iter().find(can_be_made) {
                return Err(format!(
                    "{} is not there, and a configuration of git includes it, so a command could make it and decide what git runs: a person has to make it, or take it from that configuration",
                    missing.display()
                ));
            }
            let missing = used.missing.iter().filter(can_be_made);
            self.reserved.extend(missing.filter_map(|used| first_missing(used, folder)));
        }
        Ok(())
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
                Ok(found) => {
                    if let Some(second) = second_name(folder, name, &found) {
                        return Err(format!(
                            "{} has another name (a hard link), through which it could be changed: a person has to replace it by a copy",
                            path.join(second).display()
                        ));
                    }
                    read_only.insert(at);
                }
            }
        }
        Ok(())
    }
}

/// A file that is or is in something that is only read, and is known by a second name, which may be in the same folder. Of a
/// repository only what git runs or obeys is looked at: copies on the same disk share its objects.
fn second_name(folder: &Dir, name: &str, found: &Metadata) -> Option<PathBuf> {
    if !found.is_dir() {
        return (found.nlink() > 1).then(|| name.into());
    }
    let opened = folder.open_dir_nofollow(name).ok()?;
    let below: &[&str] = if name == REPOSITORY { &["config", "config.worktree", "hooks"] } else { &["."] };
    below.iter().find_map(|part| {
        let found = opened.symlink_metadata(part).ok()?;
        if !found.is_dir() {
            return (found.nlink() > 1).then(|| Path::new(name).join(part));
        }
        let entries = opened.read_dir(part).ok()?.flatten().take(SECOND_NAMES_MAX);
        let is_shared = |found: &Metadata| found.is_file() && found.nlink() > 1;
        let shared = entries.filter(|entry| entry.metadata().is_ok_and(|found| is_shared(&found)));
        shared.map(|entry| Path::new(name).join(part).join(entry.file_name())).next()
    })
}

/// What is hidden from a program in a folder that it may read: what always is, homes of trees, and sockets, which a read-only
/// folder would not close.
pub(super) fn hidden_below(folder: &Path, hidden: &HiddenFolders) -> Result<Vec<PathBuf>, String> {
    let said = |error: io::Error| format!("the folder {} {error}", folder.display());
    let mut found = BTreeSet::new();
    let opened = open_folder(folder).map_err(said)?;
    let mut search = Search { hidden, entries: 0, found: &mut found };
    search.below(&opened, folder, DEPTH_MAX).map_err(said)?;
    let homes = found.into_iter().filter(|path| is_home(path));
    let sockets = sockets_in(folder, hidden).map_err(said)?;
    Ok(hidden.below(folder).cloned().chain(homes).chain(sockets).collect())
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
        let mut names = RepositoryNames::default();
        for entry in folder.entries()? {
            let entry = entry?;
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                let many = "has too many files to find what is only to be read: grant a smaller one";
                return Err(io::Error::other(many));
            }
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            let at = path.join(&name);
            names.see(&name);
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
        // One without a `.git` around it. Nothing that is granted is one.
        if names.are_of_repository() {
            self.found.insert(path.to_owned());
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
