//! The folder of a home: validity, ownership and access rights. Everything is checked before anything is changed, so
//! that a folder that is not a home stays as it was.
//!
//! The home itself may be a link, because people keep it on other disks. Its files may not be: a folder that contains
//! a prepared `.spinney` must not choose which files we write.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::fault::from_io;
use super::{HomeRefusal, OpenHomeError};
use crate::layout::{EXEC, ID, IGNORED, JOURNAL, LISTED, LOCK, RUNS, SOCKET, TREES, WORKSPACES};
use crate::system::{self, PRIVATE_FILE, PRIVATE_FOLDER};

const FOLDERS: [&str; 4] = [EXEC, RUNS, TREES, WORKSPACES];
/// Prefix of all other files of a home.
const JOURNALS: &str = "journal.";
/// Prefix of folders that keep a damaged journal.
pub(super) const SET_ASIDE: &str = "set-aside-";
/// Longest content of a lock, in bytes: a process id with its line break, twice if it was overwritten.
const LOCK_BYTES_MAX: u64 = 32;
/// Permission bits of group and others.
const OTHERS: u32 = 0o077;
const STICKY: u32 = 0o1000;

/// A folder that is a home, or may become one.
pub(super) struct HomeFolder {
    /// Without links.
    path: PathBuf,
}

impl HomeFolder {
    /// Opens a home's folder for writing and creates it if needed. An existing folder is not changed yet.
    pub(super) fn to_write(home: &Path) -> Result<Self, OpenHomeError> {
        make(home).map_err(|error| from_io(home, &error))?;
        let (folder, about) = Self::found(home)?;
        owned(home, &about)?;
        if system::mode(&about) & STICKY != 0 {
            return Err(refused(home, HomeRefusal::EverybodysFolder));
        }
        folder.check_files()?;
        if !folder.journal().exists() {
            folder.check_begun(home)?;
        }
        Ok(folder)
    }

    /// Opens a home's folder for reading; its owner does not matter.
    pub(super) fn to_look(home: &Path) -> Result<Self, OpenHomeError> {
        let (folder, _) = Self::found(home)?;
        // SQLite itself does not report why it cannot open a file.
        let about = fs::symlink_metadata(folder.journal()).map_err(|error| from_io(home, &error))?;
        // A second hard link is harmless for reading.
        kind(&folder.journal(), &about)?;
        Ok(folder)
    }

    fn found(home: &Path) -> Result<(Self, Metadata), OpenHomeError> {
        let at = |error| from_io(home, &error);
        let path = home.canonicalize().map_err(at)?;
        let about = fs::metadata(&path).map_err(at)?;
        if !about.is_dir() {
            return Err(from_io(home, &ErrorKind::NotADirectory.into()));
        }
        Ok((Self { path }, about))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    pub(super) fn is_others(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|about| !system::is_ours(&about))
    }

    /// Checks every file in it that has one of our names.
    fn check_files(&self) -> Result<(), OpenHomeError> {
        for name in self.names().map_err(|error| from_io(&self.path, &error))? {
            let path = self.path.join(&name);
            let about = match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                about => about.map_err(|error| from_io(&path, &error))?,
            };
            if FOLDERS.contains(&name.as_str()) {
                if about.is_symlink() {
                    return Err(refused(&path, HomeRefusal::Link));
                }
                owned(&path, &about)?;
            } else if name.starts_with(JOURNALS) || name == ID {
                plain(&path, &about)?;
                owned(&path, &about)?;
            } else if name == SOCKET && !system::is_socket(&about) {
                let is_link = about.is_symlink();
                return Err(refused(&path, if is_link { HomeRefusal::Link } else { HomeRefusal::WrongKind }));
            }
        }
        Ok(())
    }

    /// A folder without a journal becomes a home if it is empty, or contains only our own leftovers: a process died
    /// before it created the journal, or a damaged one was set aside.
    fn check_begun(&self, home: &Path) -> Result<(), OpenHomeError> {
        let names = self.names().map_err(|error| from_io(home, &error))?;
        if names.is_empty() {
            return Ok(());
        }
        let has_kind = |name: &str, is: fn(&Metadata) -> bool| {
            fs::symlink_metadata(self.path.join(name)).is_ok_and(|about| is(&about))
        };
        let is_ours = |name: &String| match name.as_str() {
            // Opening it checks its content.
            LOCK => true,
            SOCKET => has_kind(SOCKET, system::is_socket),
            IGNORED | ID | LISTED => has_kind(name, Metadata::is_file),
            name if FOLDERS.contains(&name) => has_kind(name, Metadata::is_dir),
            name if name.starts_with(SET_ASIDE) => has_kind(name, Metadata::is_dir),
            name => name.starts_with(JOURNALS),
        };
        let has_only_runs = || names.iter().all(|name| name == EXEC || name == RUNS);
        let is_begun = names.iter().any(|name| name == LOCK || name == ID) || has_only_runs();
        if names.iter().all(is_ours) && is_begun {
            return Ok(());
        }
        Err(refused(home, HomeRefusal::NotAHome))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        // A name that is not UTF-8 is not ours; it only has to be counted.
        fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    /// Opens the lock file, which only its owner may open: anyone who can open it can lock others out.
    pub(super) fn open_lock(&self) -> Result<File, OpenHomeError> {
        let path = self.path.join(LOCK);
        let at = |error: io::Error| match error {
            error if system::is_link_refused(&error) => refused(&path, HomeRefusal::Link),
            error if system::is_wrong_kind(&error) => refused(&path, HomeRefusal::WrongKind),
            error => from_io(&path, &error),
        };
        let file = system::open_private(&path).map_err(at)?;
        let about = file.metadata().map_err(at)?;
        plain(&path, &about)?;
        owned(&path, &about)?;
        let mut text = Vec::new();
        (&file).take(LOCK_BYTES_MAX + 1).read_to_end(&mut text).map_err(at)?;
        let is_lock = text.len() as u64 <= LOCK_BYTES_MAX
            && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'\n');
        if !is_lock {
            return Err(refused(&path, HomeRefusal::NotALock));
        }
        if system::mode(&about) & OTHERS != 0 {
            system::make_private_open(&file).map_err(at)?;
        }
        Ok(file)
    }

    /// Removes all access for other users. Requires the lock.
    pub(super) fn close_to_others(&self) -> Result<(), OpenHomeError> {
        close_to_others(&self.path, PRIVATE_FOLDER)?;
        for name in self.names().map_err(|error| from_io(&self.path, &error))? {
            if FOLDERS.contains(&name.as_str()) {
                close_to_others(&self.path.join(name), PRIVATE_FOLDER)?;
            } else if name.starts_with(JOURNALS) || name == ID {
                close_to_others(&self.path.join(name), PRIVATE_FILE)?;
            }
        }
        Ok(())
    }

    /// Creates the journal's file if it does not exist. SQLite would leave its mode to the umask, and copies this
    /// file's mode to its other files. Only a new file is opened here, because closing an existing one would drop
    /// locks.
    pub(super) fn make_journal(&self) -> Result<(), OpenHomeError> {
        let made = system::create_private(&self.journal());
        match made {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(from_io(&self.journal(), &error)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Creates a folder for its owner only, and its parents with the usual mode.
fn make(home: &Path) -> io::Result<()> {
    if home.is_dir() {
        return Ok(());
    }
    if let Some(above) = home.parent() {
        fs::create_dir_all(above)?;
    }
    match system::create_private_folder(home) {
        // Another process may create it at the same moment.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && home.is_dir() => Ok(()),
        made => made,
    }
}

fn close_to_others(path: &Path, mode: u32) -> Result<(), OpenHomeError> {
    let about = match fs::symlink_metadata(path) {
        // A reader that ends removes its files.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        about => about.map_err(|error| from_io(path, &error))?,
    };
    if about.is_symlink() || system::mode(&about) & OTHERS == 0 {
        return Ok(());
    }
    system::set_mode(path, mode).map_err(|error| from_io(path, &error))
}

/// Refuses anything except a plain file.
fn kind(path: &Path, about: &Metadata) -> Result<(), OpenHomeError> {
    if about.is_symlink() {
        return Err(refused(path, HomeRefusal::Link));
    }
    if !about.is_file() {
        return Err(refused(path, HomeRefusal::WrongKind));
    }
    Ok(())
}

/// Refuses anything except a plain file with one hard link.
fn plain(path: &Path, about: &Metadata) -> Result<(), OpenHomeError> {
    kind(path, about)?;
    if system::names(about) > 1 {
        return Err(refused(path, HomeRefusal::SecondName));
    }
    Ok(())
}

/// Refuses another user's file.
fn owned(path: &Path, about: &Metadata) -> Result<(), OpenHomeError> {
    let (owner, ours) = (system::owner(about), system::current_user());
    if owner == ours { Ok(()) } else { Err(refused(path, HomeRefusal::OtherOwner { owner, ours })) }
}

pub(super) fn refused(path: &Path, why: HomeRefusal) -> OpenHomeError {
    OpenHomeError::Refused { path: path.display().to_string(), why }
}
