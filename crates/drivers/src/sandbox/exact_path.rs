//! A path without links: what others can write around it must not lead elsewhere.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

/// Names what is at a path, if no link is in it.
pub(super) fn open_exact(path: &Path) -> io::Result<OwnedFd> {
    open_exact_with(path, OFlags::PATH)
}

/// The same with other flags.
pub(super) fn open_exact_with(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(CWD, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)?)
}
