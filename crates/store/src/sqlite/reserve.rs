//! Disk space reserved for removing trees. SQLite writes before it frees, so on a full disk not even a tree
//! could be removed; removing gives this space up first.

use crate::system;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

const FILE: &str = "journal.reserve";
/// What removing needs: the WAL index, and the pages that one transaction changes. Freed pages are not written.
const BYTES: usize = 256 * 1024;

/// Reserves space if there is any. A home without it works, but cannot be shrunk on a full disk.
pub(super) fn keep(home: &Path) {
    let path = home.join(FILE);
    if fs::symlink_metadata(&path).is_ok_and(|about| about.len() == BYTES as u64) {
        return;
    }
    if give_up(home).and_then(|()| fill(&path)).is_err() {
        // Keep all or nothing: others need the space more.
        let _ = give_up(home);
    }
}

pub(super) fn give_up(home: &Path) -> io::Result<()> {
    match fs::remove_file(home.join(FILE)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes bytes that no file system can compress.
fn fill(path: &Path) -> io::Result<()> {
    let mut bytes = vec![0; BYTES];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    system::create_private(path)?.write_all(&bytes)
}
