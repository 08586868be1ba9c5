//! Writes a file atomically: under another name first, then renamed. A reader, also after a crash, finds the old file
//! or the new one.

use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use spinney_kernel::primitives::Durability;

/// What a file that was written survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    /// The death of the process.
    No,
    /// The loss of power.
    Yes,
}

impl Sync {
    /// What files of a tree with this durability survive.
    pub(super) const fn new(durability: Durability) -> Self {
        match durability {
            Durability::Full => Self::Yes,
            Durability::Normal | Durability::Off => Self::No,
        }
    }
}

/// Writes a file of `folder`, unless it already has this content. Anything else in its place is replaced.
pub(super) fn write(folder: &Dir, file: &str, bytes: &[u8], sync: Sync) -> io::Result<()> {
    if is_there(folder, file, bytes)? {
        return Ok(());
    }
    let unfinished = format!(".unfinished-{file}");
    create(folder, &unfinished, bytes, sync)?;
    match folder.rename(&unfinished, folder, file) {
        // A file cannot replace a folder directly.
        Err(error) if matches!(error.kind(), ErrorKind::IsADirectory | ErrorKind::AlreadyExists) => {
            remove(folder, file)?;
            folder.rename(&unfinished, folder, file)?;
        }
        renamed => renamed?,
    }
    keep_names(folder, sync)
}

/// Writes a file that was not there, for its owner only. What a process left that died while it wrote is replaced.
pub(super) fn create(folder: &Dir, file: &str, bytes: &[u8], sync: Sync) -> io::Result<()> {
    let mut fresh = OpenOptions::new();
    fresh.write(true).create_new(true).mode(0o600);
    let mut opened = match folder.open_with(file, &fresh) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            remove(folder, file)?;
            folder.open_with(file, &fresh)?
        }
        opened => opened?,
    };
    opened.write_all(bytes)?;
    match sync {
        Sync::Yes => flush(&opened),
        Sync::No => Ok(()),
    }
}

/// Makes the names in a folder survive what its files survive.
pub(super) fn keep_names(folder: &Dir, sync: Sync) -> io::Result<()> {
    match sync {
        // The handle only names the folder; flushing needs an opened one.
        Sync::Yes => flush(&folder.open(".")?),
        Sync::No => Ok(()),
    }
}

/// Waits until a file or folder is on the disk.
fn flush(file: &File) -> io::Result<()> {
    #[cfg(test)]
    FLUSHES.with(|flushes| flushes.set(flushes.get() + 1));
    file.sync_all()
}

#[cfg(test)]
thread_local! {
    /// How often this thread waited for the disk: nothing else shows it without a loss of power.
    pub(crate) static FLUSHES: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Removes whatever has this name: a link itself and never what it leads to, a folder with all that is in it.
pub(super) fn remove(folder: &Dir, name: impl AsRef<Path>) -> io::Result<()> {
    let name = name.as_ref();
    let removed = match folder.symlink_metadata(name) {
        Ok(found) if found.is_dir() => folder.remove_dir_all(name),
        Ok(_) => folder.remove_file_or_symlink(name),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Whether a plain file with this content is there. Only what has the right size is read.
pub(super) fn is_there(folder: &Dir, file: &str, bytes: &[u8]) -> io::Result<bool> {
    match folder.symlink_metadata(file) {
        Ok(found) if found.is_file() && found.len() == bytes.len() as u64 => {}
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    let mut reading = OpenOptions::new();
    // It may have become a pipe since.
    reading.read(true).follow(FollowSymlinks::No).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let mut found = Vec::with_capacity(bytes.len() + 1);
    // What cannot be read is written again.
    let read = folder
        .open_with(file, &reading)
        .and_then(|file| file.take(bytes.len() as u64 + 1).read_to_end(&mut found));
    Ok(read.is_ok() && found == bytes)
}
