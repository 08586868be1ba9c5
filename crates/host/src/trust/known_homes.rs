//! The homes that this user made, in the user's state folder:
//!
//! ```text
//! <state>/homes/<id>/home.json      where the home is: path, device and inode
//!                    <tree>.json    what is recorded of each of its trees
//! ```
//!
//! The id is in the home itself. A home is known if its id is listed for its device and inode: a copy is not, nor is
//! another home that takes its place. Moving a home on its disk changes nothing.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spinney_kernel::primitives::TreeId;
use spinney_store::layout::ID;

use super::tree_marks::TreeMark;
use crate::error_text::with_causes;
use crate::system::files;
use crate::system::private_files;
use crate::text_file::{FileAction, FileFault};
use crate::user::folders;
use crate::user::state_files::{self, StateFileError};

const FOLDER: &str = "homes";
const ABOUT: &str = "home.json";
const STICKY: u32 = 0o1000;

/// A home that this user made or trusts.
#[derive(Clone, Debug)]
pub struct KnownHome {
    /// Its folder in the state folder.
    folder: PathBuf,
}

/// Where a home is.
#[derive(Debug, Serialize, Deserialize)]
struct HomeLocation {
    /// For people.
    path: String,
    device: u64,
    inode: u64,
}

impl HomeLocation {
    fn new(path: &Path, about: &Metadata) -> Self {
        let (device, inode) = files::identity(about);
        Self { path: path.display().to_string(), device, inode }
    }

    fn is_at(&self, about: &Metadata) -> bool {
        (self.device, self.inode) == files::identity(about)
    }
}

/// Where a home comes from.
#[derive(Debug)]
pub enum HomeOrigin {
    /// There was none, or an empty folder: it is made here. It may not be listed, for this reason.
    New {
        /// The reason.
        unlisted: Option<StateFileError>,
    },
    /// It is listed.
    Known,
    /// It is not listed, or the list cannot be read.
    Foreign,
}

impl HomeOrigin {
    /// One that is not worth listing, because the journal refuses it.
    const REFUSED: Self = Self::New { unlisted: None };
}

/// Makes a home that does not exist yet and lists it, or finds out where it comes from.
pub fn make(home: &Path) -> HomeOrigin {
    match fs::metadata(home) {
        Ok(about) if about.is_dir() && is_empty(home) => {
            // The journal refuses such a folder, and it stays as it was.
            if !files::is_ours(&about) || files::mode(&about) & STICKY != 0 {
                return HomeOrigin::REFUSED;
            }
            HomeOrigin::New { unlisted: list_empty(home, &about).err() }
        }
        Ok(about) if about.is_dir() => found(home),
        Ok(_) => HomeOrigin::REFUSED,
        Err(_) if home.symlink_metadata().is_ok() => HomeOrigin::REFUSED,
        Err(_) => make_listed(home).unwrap_or_else(|error| HomeOrigin::New { unlisted: Some(error) }),
    }
}

/// If that cannot be found out, it is foreign.
fn found(home: &Path) -> HomeOrigin {
    match KnownHome::find(home) {
        Ok(Some(_)) => HomeOrigin::Known,
        Ok(None) => HomeOrigin::Foreign,
        Err(error) => {
            let why = with_causes(&error);
            tracing::warn!("cannot tell whether this home is yours: {why}");
            HomeOrigin::Foreign
        }
    }
}

/// A new home appears under its name with its id in it and listed already, so another process that uses it at the
/// same time finds it known.
fn make_listed(home: &Path) -> Result<HomeOrigin, StateFileError> {
    let (Some(above), Some(name)) = (home.parent(), home.file_name()) else { return Ok(HomeOrigin::REFUSED) };
    // What cannot be made here cannot be made by the journal either, which says why.
    if !above.as_os_str().is_empty() && fs::create_dir_all(above).is_err() {
        return Ok(HomeOrigin::REFUSED);
    }
    let id = draw_id(home)?;
    let unfinished = above.join(format!("{}.new-{id}", name.to_string_lossy()));
    if private_files::new_folder(&unfinished).is_err() {
        return Ok(HomeOrigin::REFUSED);
    }
    let cannot_write = |error| FileFault::when(FileAction::Write, home)(error);
    let make = || -> Result<HomeOrigin, StateFileError> {
        private_files::write(&unfinished.join(ID), id.as_bytes()).map_err(cannot_write)?;
        let known = list(&id, home, &fs::metadata(&unfinished).map_err(cannot_write)?)?;
        match fs::rename(&unfinished, home) {
            Ok(()) => Ok(HomeOrigin::New { unlisted: None }),
            Err(error) => {
                known.unlist();
                // Another process made it meanwhile.
                if home.is_dir() { Ok(found(home)) } else { Err(cannot_write(error).into()) }
            }
        }
    };
    let made = make();
    if unfinished.exists() {
        let _ = fs::remove_dir_all(&unfinished);
    }
    made
}

/// Lists an empty folder as a home. Of two processes that do so at the same time, one finds the id of the other.
fn list_empty(home: &Path, about: &Metadata) -> Result<(), StateFileError> {
    let id = draw_id(home)?;
    let known = list(&id, home, about)?;
    match write_id(home, &id) {
        Err(error) => {
            known.unlist();
            let is_other = error.kind() == ErrorKind::AlreadyExists;
            if is_other { Ok(()) } else { Err(FileFault::when(FileAction::Write, home)(error).into()) }
        }
        Ok(()) => Ok(()),
    }
}

/// Writes the id of a home that others may be reading: it appears whole, or not at all, and never replaces another.
/// It is written beside the home first, because a home with a file in it is not empty any more.
fn write_id(home: &Path, id: &str) -> io::Result<()> {
    let place = home.join(ID);
    let (Some(above), Some(name)) = (home.parent(), home.file_name()) else {
        return private_files::write(&place, id.as_bytes());
    };
    let unfinished = above.join(format!("{}.new-{id}", name.to_string_lossy()));
    let linked =
        private_files::write(&unfinished, id.as_bytes()).and_then(|()| fs::hard_link(&unfinished, &place));
    let _ = fs::remove_file(&unfinished);
    match linked {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        // The folder above is not ours to write to, or on another disk, or the disk knows no links.
        Err(_) => private_files::write(&place, id.as_bytes()),
        Ok(()) => Ok(()),
    }
}

/// A random name for this home, which cannot be guessed.
fn draw_id(home: &Path) -> Result<String, FileFault> {
    state_files::draw_id().map_err(FileFault::when(FileAction::Make, home))
}

fn list(id: &str, home: &Path, about: &Metadata) -> Result<KnownHome, StateFileError> {
    let folder = state_files::make_folder(FOLDER)?.join(id);
    private_files::folder(&folder).map_err(FileFault::when(FileAction::Write, &folder))?;
    let known = KnownHome { folder };
    let path = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
    state_files::write(&known.folder.join(ABOUT), &HomeLocation::new(&path, about))?;
    Ok(known)
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

impl KnownHome {
    /// A home that exists, if it is listed.
    pub fn find(home: &Path) -> Result<Option<Self>, StateFileError> {
        let Ok(state) = folders::state() else { return Ok(None) };
        let id = state_files::read_bytes(&home.join(ID))
            .map_err(FileFault::when(FileAction::Read, &home.join(ID)))?;
        // It becomes the name of a folder.
        let id = id.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|id| state_files::is_id(id));
        let Some(id) = id else { return Ok(None) };
        let known = Self { folder: state.join(FOLDER).join(id) };
        let about = fs::metadata(home).map_err(FileFault::when(FileAction::Read, home))?;
        let place: Option<HomeLocation> = state_files::read(&known.folder.join(ABOUT))?;
        Ok(place.is_some_and(|place| place.is_at(&about)).then_some(known))
    }

    /// Lists a home that exists, because the user trusts it. It gets a new id, because others may know the one it has.
    pub fn list(home: &Path) -> Result<Self, StateFileError> {
        let id = draw_id(home)?;
        let about = fs::metadata(home).map_err(FileFault::when(FileAction::Read, home))?;
        let known = list(&id, home, &about)?;
        let written = state_files::replace(&home.join(ID), id.as_bytes());
        if written.is_err() {
            known.unlist();
        }
        written.map_err(FileFault::when(FileAction::Write, &home.join(ID)))?;
        Ok(known)
    }

    fn unlist(&self) {
        // What is left names a home that does not exist.
        let _ = fs::remove_dir_all(&self.folder);
    }

    pub(super) fn mark(&self, tree: TreeId) -> Result<Option<TreeMark>, StateFileError> {
        state_files::read(&self.mark_file(tree))
    }

    pub(super) fn set_mark(&self, tree: TreeId, mark: &TreeMark) -> Result<(), StateFileError> {
        state_files::write(&self.mark_file(tree), mark)
    }

    pub(super) fn remove_mark(&self, tree: TreeId) -> Result<(), StateFileError> {
        let path = self.mark_file(tree);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(FileFault::when(FileAction::Remove, &path)(error).into())
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn mark_file(&self, tree: TreeId) -> PathBuf {
        self.folder.join(format!("{tree}.json"))
    }
}
