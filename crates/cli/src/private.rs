//! Files of a home as this program keeps them: made for their owner only, and opened through no link.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Makes a folder, unless it is there. A link in its place is an error.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.symlink_metadata()?.is_dir() => Ok(()),
        made => made,
    }
}

/// Writes a file that is not there yet.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

/// Waits until a folder's names, or a file's bytes, are on the disk.
pub(crate) fn flush(path: &Path) -> io::Result<()> {
    #[cfg(test)]
    FLUSHED.with_borrow_mut(|flushed| flushed.push(path.to_owned()));
    File::open(path)?.sync_all()
}

#[cfg(test)]
thread_local! {
    /// What this thread waited for: nothing else shows it without a loss of power.
    pub(crate) static FLUSHED: std::cell::RefCell<Vec<std::path::PathBuf>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// The same for a folder and every file in it.
pub(crate) fn flush_all(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        flush(&entry?.path())?;
    }
    flush(folder)
}

/// Opens a plain file to read. What a name leads to may be anything, such as a pipe at which nobody else ever comes; so
/// the opened file is asked what it is.
pub(crate) fn plain(path: &Path, links: Links) -> io::Result<File> {
    let flags = match links {
        Links::Follow => OFlags::NONBLOCK,
        Links::Refuse => OFlags::NONBLOCK | OFlags::NOFOLLOW,
    };
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    checked(opened.map_err(|error| explained(error, links))?)
}

/// What the operating system says when something is opened that is no plain file, in words.
pub(crate) fn explained(error: io::Error, links: Links) -> io::Error {
    match (Errno::from_io_error(&error), links) {
        (Some(Errno::LOOP), Links::Refuse) => io::Error::new(ErrorKind::InvalidInput, "it is a link"),
        // A socket cannot be opened.
        (Some(Errno::NXIO), _) => not_plain(),
        (Some(_) | None, _) => error,
    }
}

/// An opened file, if it is a plain one.
pub(crate) fn checked(file: File) -> io::Result<File> {
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder"));
    }
    if about.is_file() { Ok(file) } else { Err(not_plain()) }
}

/// Whether a name may be a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// It is a person's file, wherever it is.
    Follow,
    /// It is a file of a home.
    Refuse,
}

fn not_plain() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")
}
