//! Room on the disk that is set aside for removing trees. SQLite writes before it frees, so that on a full disk not even
//! a tree could be removed; whoever removes one gives this up first.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const FILE: &str = "journal.reserve";
/// What removing takes: the index of the write-ahead file, and the pages that one transaction changes. Pages that are
/// freed are not written.
const BYTES: usize = 256 * 1024;

/// Sets room aside, if there is some. A home without it works; it only cannot be made smaller on a full disk.
pub(super) fn keep(home: &Path) {
    let path = home.join(FILE);
    if fs::symlink_metadata(&path).is_ok_and(|about| about.len() == BYTES as u64) {
        return;
    }
    if give_up(home).and_then(|()| fill(&path)).is_err() {
        // What does not fit is not kept in part: others need the room more.
        let _ = give_up(home);
    }
}

pub(super) fn give_up(home: &Path) -> io::Result<()> {
    match fs::remove_file(home.join(FILE)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes bytes that no file system can make smaller.
fn fill(path: &Path) -> io::Result<()> {
    let mut bytes = vec![0; BYTES];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(&bytes)
}
