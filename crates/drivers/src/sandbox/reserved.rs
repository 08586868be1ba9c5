//! Names that must not be created in a folder that a box may write. The kernel cannot refuse a name, but a name that
//! exists cannot be created: while the box runs, an empty folder has it, which is read-only in the box. The guard makes
//! it before the box and removes it when nothing of the box is left.
//!
//! Boxes of other agents may reserve the same names at the same time, also from other processes. Each has a shared lock on
//! the folder, and the last one removes the names. A guard that is killed leaves empty folders, which the next box
//! knows by their mode.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, fchmod, flock, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

use super::exact_path::open_exact_with;

/// Unusual, so that such a folder is known to be ours: sticky, without a right to write, and readable, so that programs
/// that walk through do not fail.
const MODE: u32 = 0o1555;
/// How often a lock is tried, and how long after another. Who removes names has it for a moment.
const LOCK_TRIES: u32 = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// Names that are taken until it is dropped.
#[derive(Debug, Default)]
pub(super) struct ReservedNames {
    folders: Vec<ReservedFolder>,
}

#[derive(Debug)]
struct ReservedFolder {
    path: PathBuf,
    opened: OwnedFd,
    names: Vec<OsString>,
}

impl ReservedNames {
    /// Takes the names that nothing has.
    pub(super) fn make(paths: &[PathBuf]) -> io::Result<Self> {
        let mut names: BTreeMap<&Path, Vec<OsString>> = BTreeMap::new();
        for path in paths {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            names.entry(folder).or_default().push(name.to_owned());
        }
        let mut made = Self::default();
        for (path, names) in names {
            let opened = open_exact_with(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
            lock(&opened)?;
            let folder = ReservedFolder { path: path.to_owned(), opened, names };
            // From here on they are removed again.
            made.folders.push(folder);
        }
        made.folders.iter().try_for_each(ReservedFolder::make)?;
        Ok(made)
    }

    /// Those that exist now. Where the user may not make them, a box cannot either.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let all =
            self.folders.iter().flat_map(|folder| folder.names.iter().map(|name| folder.path.join(name)));
        all.filter(|path| path.symlink_metadata().is_ok()).collect()
    }
}

impl ReservedFolder {
    fn make(&self) -> io::Result<()> {
        for name in &self.names {
            match mkdirat(&self.opened, name, Mode::RWXU) {
                Ok(()) => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let made = openat(&self.opened, name, flags, Mode::empty())?;
                    fchmod(made, Mode::from_raw_mode(MODE))?;
                }
                Err(Errno::EXIST | Errno::ACCESS | Errno::PERM | Errno::ROFS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Drop for ReservedFolder {
    fn drop(&mut self) {
        // Another box has them as well, and removes them.
        if flock(&self.opened, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        for name in self.names.iter().filter(|name| is_ours(&self.opened, name)) {
            // What has something in it stays.
            let _ = unlinkat(&self.opened, name, AtFlags::REMOVEDIR);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "another process' release of a lock is no event")]
fn lock(folder: &OwnedFd) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match flock(folder, FlockOperation::NonBlockingLockShared) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK | Errno::INTR) => sleep(LOCK_PAUSE),
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::BUSY.into())
}

/// Whether a name is taken by a folder as we make it.
pub(crate) fn is_ours(folder: impl AsFd, name: &OsStr) -> bool {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| {
        FileType::from_raw_mode(found.st_mode) == FileType::Directory && found.st_mode & 0o7777 == MODE
    })
}
