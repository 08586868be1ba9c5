//! Facts about files, and ways to name them, that only this system has.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{Access, CWD, RenameFlags, access, renameat_with};
use rustix::io::Errno;

pub(crate) use spinney_store::system::{
    UNBLOCKED, UNBLOCKED_UNLINKED, current_user, identity, is_ours, mode, modified, owner,
};

/// Whether this process may make files in a folder.
pub(crate) fn is_writable_folder(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Whether a path leads to a socket, through links too.
pub(crate) fn is_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_socket())
}

/// Renames a file unless the new name is taken.
pub(crate) fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can do that.
        Err(Errno::INVAL | Errno::NOSYS) => fs::hard_link(from, to),
        renamed => renamed.map_err(io::Error::from),
    }
}

/// Lets two files take each other's names at one moment. Where the file system cannot do that, `other` is called `between`
/// for a moment, and stays so.
pub(crate) fn exchange(one: &Path, other: &Path, between: &Path) -> io::Result<()> {
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(other, between).and_then(|()| fs::rename(one, other)),
        exchanged => exchanged.map_err(io::Error::from),
    }
}

/// Whether an open file has no name any more.
pub(crate) fn is_unlinked(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.nlink() == 0)
}

/// What follows a prefix.
pub(crate) fn after_prefix<'a>(text: &'a OsStr, prefix: &str) -> Option<&'a OsStr> {
    text.as_bytes().strip_prefix(prefix.as_bytes()).map(OsStr::from_bytes)
}
