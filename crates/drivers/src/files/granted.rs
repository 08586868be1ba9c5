//! Changes files in folders of the user: whole or not at all, with the modes that they had. They are the user's, so they are
//! neither counted nor kept in the journal.

use std::io::{self, ErrorKind, Write as _};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_fs_ext::{DirExt as _, MetadataExt as _};
use cap_std::fs::{Dir, Metadata, OpenOptions, OpenOptionsExt as _, Permissions, PermissionsExt as _};
use spinney_kernel::primitives::Durability;

use super::advice::Refused;
use super::place::{GrantedPath, Reach};
use crate::folders::open_folder;

/// What a file is for others if it is new; the user's mask takes from it.
const NEW_MODE: u32 = 0o666;
/// Modes that a file keeps. It never runs as its owner.
const KEPT_MODES: u32 = 0o777;

/// Writes a file in place of what has its name. Folders of its path are made.
pub(super) fn write(
    reach: &Reach<'_>,
    path: &GrantedPath,
    bytes: &[u8],
    durability: Durability,
) -> Result<(), Refused> {
    reach.check_write(path)?;
    let fault = |error: io::Error| Refused::io(path, &error);
    let (folder, name) = opened(reach, path, Missing::Make)?;
    let mode = match plain(&folder, path, name) {
        Ok(found) => Some(found.permissions().mode() & KEPT_MODES),
        Err(NotPlain::Missing) => None,
        Err(NotPlain::Refused(refused)) => return Err(refused),
    };
    put(&folder, name, bytes, mode, durability).map_err(fault)
}

/// Removes a plain file. Folders stay, also empty ones: they are the user's.
pub(super) fn remove(reach: &Reach<'_>, path: &GrantedPath, durability: Durability) -> Result<(), Refused> {
    reach.check_write(path)?;
    let fault = |error: io::Error| Refused::io(path, &error);
    let (folder, name) = opened(reach, path, Missing::Refuse)?;
    match plain(&folder, path, name) {
        Ok(_) => {}
        Err(NotPlain::Missing) => return Err(fault(ErrorKind::NotFound.into())),
        Err(NotPlain::Refused(refused)) => return Err(refused),
    }
    folder.remove_file_or_symlink(name).map_err(fault)?;
    flush(&folder, durability).map_err(fault)
}

/// What happens to a folder of a path that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    Refuse,
}

/// The folder that a file is in, and its name.
fn opened<'p>(reach: &Reach<'_>, path: &'p GrantedPath, missing: Missing) -> Result<(Dir, &'p str), Refused> {
    let Some((folders, name)) = path.split() else {
        return Err(Refused::new(format!("`{path}` is a folder: name a file in it")));
    };
    let hidden = reach.hidden.ids();
    let mut folder = open_folder(path.root()).map_err(|error| super::handle::linked(path, &error))?;
    for name in folders {
        let below = match folder.open_dir_nofollow(name) {
            Err(error) if error.kind() == ErrorKind::NotFound && missing == Missing::Make => {
                make(&folder, name).and_then(|()| folder.open_dir_nofollow(name))
            }
            opened => opened,
        };
        folder = below.map_err(|error| super::handle::linked(path, &error))?;
        if hidden.has_folder(&folder) {
            return Err(Refused::io(path, &ErrorKind::NotFound.into()));
        }
    }
    Ok((folder, name))
}

fn make(folder: &Dir, name: &str) -> io::Result<()> {
    match folder.create_dir(name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Why there is no plain file.
enum NotPlain {
    Missing,
    Refused(Refused),
}

/// A regular file with one name. One that has another is somewhere else as well.
fn plain(folder: &Dir, path: &GrantedPath, name: &str) -> Result<Metadata, NotPlain> {
    let found = match folder.symlink_metadata(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(NotPlain::Missing),
        found => found.map_err(|error| NotPlain::Refused(Refused::io(path, &error)))?,
    };
    if found.is_dir() {
        return Err(NotPlain::Refused(Refused::io(path, &ErrorKind::IsADirectory.into())));
    }
    if !found.is_file() || found.nlink() != 1 {
        return Err(NotPlain::Refused(Refused::not_plain(path)));
    }
    Ok(found)
}

/// Under another name first: a reader finds the old file or the new one.
fn put(folder: &Dir, name: &str, bytes: &[u8], mode: Option<u32>, durability: Durability) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let unfinished = format!(".unfinished-{}-{count}", process::id());
    let written = fill(folder, &unfinished, bytes, mode, durability)
        .and_then(|()| folder.rename(&unfinished, folder, name));
    if written.is_err() {
        // What could not be made is not there.
        let _ = folder.remove_file_or_symlink(&unfinished);
    }
    written?;
    flush(folder, durability)
}

fn fill(folder: &Dir, name: &str, bytes: &[u8], mode: Option<u32>, durability: Durability) -> io::Result<()> {
    let mut fresh = OpenOptions::new();
    fresh.write(true).create_new(true).mode(mode.unwrap_or(NEW_MODE));
    let mut file = folder.open_with(name, &fresh)?;
    file.write_all(bytes)?;
    if let Some(mode) = mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    if durability == Durability::Full { file.sync_all() } else { Ok(()) }
}

fn flush(folder: &Dir, durability: Durability) -> io::Result<()> {
    // The handle only names the folder; flushing needs an opened one.
    if durability == Durability::Full { folder.open(".")?.sync_all() } else { Ok(()) }
}
