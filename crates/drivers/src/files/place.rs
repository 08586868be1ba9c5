//! Where the path that an agent gives leads: into its own folder, or by an absolute path into a folder of the user that it
//! was granted. Either way it is opened from a handle, name by name, and no link is followed.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt as _;
use cap_std::fs::Dir;
use spinney_kernel::definition::FolderAccess;
use spinney_kernel::port::{FolderRight, Rights};
use spinney_kernel::primitives::{is_hostile, limit};

use super::advice::Refused;
use super::handle;
use super::path::{FilePath, shown};
use crate::folders::{
    GitPaths, HiddenFolders, HiddenIds, REPOSITORY, RepositoryNames, check_folder, open_folder, protected_in,
};
use crate::workspace::Workspace;

/// Longest absolute path that an agent gives: that of a folder, and one below it.
const BYTES_MAX: usize = limit::FOLDER_PATH_BYTES_MAX + limit::FILE_PATH_BYTES_MAX;
/// Longest name that file systems have.
const NAME_BYTES_MAX: usize = 255;

/// What an agent can reach.
pub(super) struct Reach<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) rights: &'a Rights,
    pub(super) hidden: &'a HiddenFolders,
}

/// A path that an agent may try to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Own(FilePath),
    Granted(GrantedPath),
}

/// A path in a folder of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GrantedPath {
    folder: FolderRight,
    /// Below that folder.
    names: Vec<String>,
}

impl Reach<'_> {
    /// Reads a path as an agent gives it.
    pub(super) fn place(&self, text: &str) -> Result<Place, Refused> {
        if self.rights.folders.is_empty() || !text.starts_with('/') {
            return FilePath::parse(text).map(Place::Own);
        }
        self.granted(text).map(Place::Granted)
    }

    fn granted(&self, text: &str) -> Result<GrantedPath, Refused> {
        if text.len() > BYTES_MAX {
            let long = format!("a path of {} bytes is too long: use at most {BYTES_MAX}", text.len());
            return Err(Refused::new(long));
        }
        let names: Vec<&str> = text.trim_end_matches('/').split('/').skip(1).collect();
        if names.iter().any(|name| matches!(*name, "" | "." | "..")) {
            let why = "contains `.`, `..` or an empty name: write the whole path";
            return Err(Refused::new(format!("`{}` {why}", shown(text))));
        }
        if names.iter().any(|name| {
            name.len() > NAME_BYTES_MAX || name.contains(|c: char| c.is_control() || is_hostile(c))
        }) {
            return Err(Refused::new(format!("`{}` contains a name that is not allowed", shown(text))));
        }
        let path = PathBuf::from(format!("/{}", names.join("/")));
        let Some(folder) = self.rights.folder_around(&path) else {
            let folders: Vec<String> =
                self.rights.folders.iter().map(|folder| format!("`{}`", folder.path.display())).collect();
            let folders = folders.join(", ");
            let why = format!("is outside your folders: use {folders}, or `outputs/NAME` of your own");
            return Err(Refused::new(format!("`{}` {why}", shown(text))));
        };
        if self.hidden.contain(&path) {
            return Err(Refused::new(format!("`{}` is not for agents: leave it alone", shown(text))));
        }
        let above = folder.path.iter().skip(1).count();
        let names = names.into_iter().skip(above).map(str::to_owned).collect();
        Ok(GrantedPath { folder: folder.clone(), names })
    }

    /// The folder from which a place is opened. Ignore files count from here.
    pub(super) fn top(&self, place: &Place) -> io::Result<Dir> {
        match place {
            Place::Own(path) => self.workspace.folder().open_dir_nofollow(path.top().as_str()),
            Place::Granted(path) => open_folder(&path.folder.path),
        }
    }

    /// Folders that are not opened on the way.
    pub(super) fn hidden_ids(&self, place: &Place) -> HiddenIds {
        match place {
            Place::Own(_) => HiddenIds::default(),
            Place::Granted(_) => self.hidden.ids(),
        }
    }

    /// Opens a folder of a place by its names from the top.
    pub(super) fn folder(&self, place: &Place, names: &[String]) -> io::Result<Dir> {
        let hidden = self.hidden_ids(place);
        names.iter().try_fold(self.top(place)?, |folder, name| {
            let below = folder.open_dir_nofollow(name)?;
            if hidden.has_folder(&below) { Err(io::ErrorKind::NotFound.into()) } else { Ok(below) }
        })
    }

    /// The folder that a file is in, and its name.
    pub(super) fn file<'p>(&self, place: &'p Place) -> Result<(Dir, &'p str), Refused> {
        let Some((name, folders)) = place.names().split_last() else {
            return Err(Refused::new(format!("`{place}` is a folder: name a file in it")));
        };
        let folder = self.folder(place, folders).map_err(|error| handle::linked(place, &error))?;
        Ok((folder, name))
    }

    /// Refuses a path in a folder of the user that may not be written.
    pub(super) fn check_write(&self, path: &GrantedPath) -> Result<(), Refused> {
        if path.folder.access != FolderAccess::Write {
            return Err(Refused::new(format!("`{path}` may only be read: write elsewhere")));
        }
        let kept = |what: &str| {
            Refused::new(format!("`{path}` may only be read, because {what}: leave it as it is"))
        };
        let below: PathBuf = path.names.iter().collect();
        if let Some(name) = protected_in(&below) {
            let name = name.to_string_lossy();
            return Err(kept(&format!("`{name}` decides what programs of the user do")));
        }
        let at = path.folder.path.join(&below);
        if self.is_used_by_git(&path.folder.path, &at) {
            return Err(kept("git uses it"));
        }
        if is_in_repository(&path.folder.path, &at) {
            return Err(kept("git takes its folder for a repository"));
        }
        check_folder(&path.folder.path, path.folder.access, self.hidden)
            .map_err(|problem| Refused::new(format!("`{}` {problem}", path.folder.path.display())))
    }

    /// Whether the repository of a granted folder, or one between it and a path, uses what is at the path.
    fn is_used_by_git(&self, folder: &Path, at: &Path) -> bool {
        let git = self.hidden.git();
        let below = at.ancestors().skip(1).take_while(|above| *above != folder);
        let tops = below.filter(|above| above.join(REPOSITORY).symlink_metadata().is_ok());
        let found = tops.map(|top| GitPaths::of(top, git)).chain([GitPaths::around(folder, git)]);
        found.into_iter().any(|used| {
            let mut all = used.existing.iter().chain(&used.missing).chain(&used.missing_configurations);
            // What covers the whole of a folder was granted with it.
            all.any(|used| at.starts_with(used) && used != folder)
        })
    }
}

/// Whether a path is in a folder that is a repository without being a `.git`, or that this path makes one.
fn is_in_repository(folder: &Path, at: &Path) -> bool {
    let mut folders = at.ancestors().skip(1).take_while(|above| above.starts_with(folder));
    folders.any(|above| {
        let mut names = RepositoryNames::at(above);
        let name = at.strip_prefix(above).ok().and_then(|below| below.iter().next());
        let is_part = name.is_some_and(|name| names.see(name));
        names.are_of_repository() || (is_part && names.are_of_unfinished_repository())
    })
}

impl Place {
    /// Every name below the top.
    pub(super) fn names(&self) -> &[String] {
        match self {
            Self::Own(path) => path.names(),
            Self::Granted(path) => &path.names,
        }
    }

    /// Whether it is the top itself.
    pub(super) fn is_top(&self) -> bool {
        self.names().is_empty()
    }
}

impl GrantedPath {
    /// The folders from the granted one down, and the file in the last of them.
    pub(super) fn split(&self) -> Option<(&[String], &str)> {
        let (file, folders) = self.names.split_last()?;
        Some((folders, file))
    }

    /// The folder that was granted.
    pub(super) fn root(&self) -> &Path {
        &self.folder.path
    }
}

impl fmt::Display for GrantedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.folder.path.display())?;
        self.names.iter().try_for_each(|name| write!(f, "/{name}"))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(path) => path.fmt(f),
            Self::Granted(path) => path.fmt(f),
        }
    }
}
