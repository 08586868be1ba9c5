//! Which files of a copy become part of a commit: git lists names in a box, and here each is looked at by handles, without
//! following a link.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, open, openat, statat};
use rustix::io::Errno;

use super::record::UntakenFiles;

/// Larger files are not committed.
pub(super) const FILE_BYTES_MAX: u64 = 10_000_000;
const SUBMODULE: &[u8] = b"160000";

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Paths for git, each ended by a zero byte.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChangedFiles {
    pub(super) add: Vec<u8>,
    pub(super) remove: Vec<u8>,
    pub(super) left_out: UntakenFiles,
}

/// What a name is.
enum Found {
    /// A plain file or a link, which git can read.
    File,
    Large,
    /// Nothing of this name, or a folder: a tracked file is gone.
    Gone,
    Other,
}

impl ChangedFiles {
    /// From what git lists: tracked files with their modes, files that are not tracked, and ignored ones.
    pub(super) fn new(
        copy: &Path,
        tracked: &[u8],
        untracked: &[u8],
        ignored: &[u8],
    ) -> std::io::Result<Self> {
        let top = open(copy, FOLDER, Mode::empty())?;
        let mut changed = Self::default();
        for entry in names(tracked) {
            let Some(at) = entry.iter().position(|byte| *byte == b'\t') else { continue };
            let (about, path) = (&entry[..at], &entry[at + 1..]);
            if !about.starts_with(SUBMODULE) {
                changed.take(&top, path, true);
            }
        }
        for path in names(untracked) {
            changed.take(&top, path, false);
        }
        names(ignored).for_each(|path| changed.left_out.ignored.add(path));
        Ok(changed)
    }

    fn take(&mut self, top: &OwnedFd, path: &[u8], is_tracked: bool) {
        let list = match look(top, path) {
            Found::File => &mut self.add,
            Found::Gone if is_tracked => &mut self.remove,
            Found::Large => return self.left_out.large.add(path),
            // A folder that git does not look into is another repository.
            Found::Gone | Found::Other => return self.left_out.other.add(path),
        };
        list.extend_from_slice(path);
        list.push(0);
    }
}

fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|name| !name.is_empty())
}

fn look(top: &OwnedFd, path: &[u8]) -> Found {
    let mut parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let is_plain = |part: &&[u8]| !part.is_empty() && **part != *b"." && **part != *b"..";
    let Some(last) = parts.pop().filter(is_plain) else { return Found::Gone };
    let mut folder: Option<OwnedFd> = None;
    for part in parts {
        let above = folder.as_ref().unwrap_or(top);
        match openat(above, OsStr::from_bytes(part), FOLDER, Mode::empty()) {
            Ok(below) => folder = Some(below),
            // A link or a file is in its place, or nothing.
            Err(_) => return Found::Gone,
        }
    }
    let folder = folder.as_ref().unwrap_or(top);
    let name = OsStr::from_bytes(last);
    let found = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(error) if error == Errno::NOENT || error == Errno::NOTDIR => return Found::Gone,
        Err(_) => return Found::Other,
    };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink => Found::File,
        FileType::Directory => Found::Gone,
        FileType::RegularFile if found.st_size.unsigned_abs() > FILE_BYTES_MAX => Found::Large,
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match openat(folder.as_fd(), name, flags, Mode::empty()) {
                Ok(_) => Found::File,
                Err(error) if std::io::Error::from(error).kind() == ErrorKind::NotFound => Found::Gone,
                Err(_) => Found::Other,
            }
        }
        _ => Found::Other,
    }
}
