//! What files are on this system: owners, modes, identities, and opens that follow no link. Nothing else in this crate names
//! Unix, and the crates above take these facts from here.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
    PermissionsExt as _,
};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;

/// What only its owner may read and write.
pub(crate) const PRIVATE_FILE: u32 = 0o600;
/// What only its owner may enter.
pub(crate) const PRIVATE_FOLDER: u32 = 0o700;
/// Flags of an open that does not wait for the other end of a pipe.
pub const UNBLOCKED: i32 = OFlags::NONBLOCK.bits().cast_signed();
/// The same for a path that must not be a link.
pub const UNBLOCKED_UNLINKED: i32 = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).bits().cast_signed();

/// The user who runs this process.
#[must_use]
pub fn current_user() -> u32 {
    geteuid().as_raw()
}

/// The user to whom a file belongs.
#[must_use]
pub fn owner(about: &Metadata) -> u32 {
    about.uid()
}

/// Whether a file belongs to the user who runs this process.
#[must_use]
pub fn is_ours(about: &Metadata) -> bool {
    owner(about) == current_user()
}

/// Who may do what with a file.
#[must_use]
pub fn mode(about: &Metadata) -> u32 {
    about.mode()
}

/// The device and the number of a file: the same for every name that it has.
#[must_use]
pub fn identity(about: &Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

/// When a file was changed last: seconds and nanoseconds.
#[must_use]
pub fn modified(about: &Metadata) -> (i64, i64) {
    (about.mtime(), about.mtime_nsec())
}

/// How many names a file has.
pub(crate) fn names(about: &Metadata) -> u64 {
    about.nlink()
}

pub(crate) fn is_socket(about: &Metadata) -> bool {
    about.file_type().is_socket()
}

/// Creates a file that only its owner may open, and opens it for writing.
///
/// # Errors
/// If there is one already, or it cannot be made.
pub fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(path)
}

/// Opens such a file for reading and writing, and creates it if it does not exist.
///
/// # Errors
/// If it is a link, or cannot be opened.
pub fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE);
    options.custom_flags(UNBLOCKED_UNLINKED).open(path)
}

/// Creates a folder that only its owner may enter.
///
/// # Errors
/// If there is one already, or it cannot be made.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE_FOLDER).create(path)
}

/// Opens for reading what must not be a link.
pub(crate) fn open_unlinked(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(UNBLOCKED_UNLINKED).open(path)
}

/// Takes an open file away from other users.
pub(crate) fn make_private_open(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(PRIVATE_FILE))
}

/// Takes what is at a path away from other users.
///
/// # Errors
/// If it is not there, or another user's.
pub fn make_private(path: &Path) -> io::Result<()> {
    set_mode(path, PRIVATE_FILE)
}

pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Writes at the beginning of a file, in place.
pub(crate) fn overwrite(file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, 0)
}

/// Whether an open that follows no link found one.
#[must_use]
pub fn is_link_refused(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::LOOP)
}

/// Whether an open found something that cannot be opened in this way, such as a socket.
#[must_use]
pub fn is_wrong_kind(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NXIO | Errno::ISDIR))
}
