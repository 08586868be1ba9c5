//! Private files of a home and of a user: created for their owner only. Those of a home are not opened through links.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::io::Errno;
use spinney_store::system;

use super::files::{UNBLOCKED, UNBLOCKED_UNLINKED};

/// Creates a folder unless it exists. A link in its place is an error.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    match new_folder(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.symlink_metadata()?.is_dir() => Ok(()),
        made => made,
    }
}

/// Creates a folder that does not exist.
pub(crate) fn new_folder(path: &Path) -> io::Result<()> {
    system::create_private_folder(path)
}

/// Creates a folder and those above it, unless they exist.
pub(crate) fn folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a new file with this content.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create(path)?.write_all(bytes)
}

/// Creates a new file and opens it for writing.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    system::create_private(path)
}

/// Opens a file for reading and writing, and makes it if it does not exist.
pub(crate) fn open_or_make(path: &Path) -> io::Result<File> {
    checked(system::open_private(path).map_err(|error| explained(error, Links::Refuse))?)
}

/// Replaces a file by another with this content, whole or not at all.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let written = write(&new, bytes).and_then(|()| flush(&new)).and_then(|()| fs::rename(&new, path));
    if let Err(error) = written {
        // What is left of it is of no use.
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    flush_folder_of(path)
}

/// Flushes the entries of the folder that a file is in.
pub(crate) fn flush_folder_of(path: &Path) -> io::Result<()> {
    flush(path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// Flushes a file, or a folder's entries, to disk.
pub(crate) fn flush(path: &Path) -> io::Result<()> {
    #[cfg(test)]
    FLUSHED.with_borrow_mut(|flushed| flushed.push(path.to_owned()));
    File::open(path)?.sync_all()
}

#[cfg(test)]
thread_local! {
    /// What this thread flushed, for tests: only a loss of power would show it otherwise.
    pub(crate) static FLUSHED: std::cell::RefCell<Vec<std::path::PathBuf>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Flushes a folder and every file in it.
pub(crate) fn flush_all(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        flush(&entry?.path())?;
    }
    flush(folder)
}

/// Opens a plain file for reading. A path may lead to anything, such as a pipe without a writer, so the opened file
/// is checked.
pub(crate) fn plain(path: &Path, links: Links) -> io::Result<File> {
    let flags = match links {
        Links::Follow => UNBLOCKED,
        Links::Refuse => UNBLOCKED_UNLINKED,
    };
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    checked(opened.map_err(|error| explained(error, links))?)
}

/// Explains errors from opening something that is not a plain file.
pub(crate) fn explained(error: io::Error, links: Links) -> io::Error {
    match (Errno::from_io_error(&error), links) {
        (Some(Errno::LOOP), Links::Refuse) => io::Error::new(ErrorKind::InvalidInput, "it is a link"),
        // A socket cannot be opened.
        (Some(Errno::NXIO), _) => not_plain(),
        (Some(_) | None, _) => error,
    }
}

/// Fails unless it is a plain file.
pub(crate) fn checked(file: File) -> io::Result<File> {
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder: name a file in it"));
    }
    if about.is_file() { Ok(file) } else { Err(not_plain()) }
}

/// Whether a path may lead through links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// For the user's own files.
    Follow,
    /// For files of a home.
    Refuse,
}

fn not_plain() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")
}
