//! Detects that files of an open journal were deleted, replaced or changed by another process. A process can keep writing to
//! deleted files, and everything that it confirms is lost when it ends; and what is written on top of changed rows is no
//! continuation of what was confirmed.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use spinney_journal::JournalFault;

use super::fault::opening;
use super::loss::wal_of;
use super::{OpenHomeError, commit_count};
use crate::layout::JOURNAL;
use crate::system;

/// The files of an open journal.
pub(super) struct FilesInPlace {
    files: [WatchedFile; 3],
    /// SQLite's number of the content: it changes with the commits of others, not with those of its connection.
    version: i64,
    database: PathBuf,
}

struct WatchedFile {
    path: PathBuf,
    /// Unknown before the first commit, which may create it.
    known: Option<FileTraits>,
}

#[derive(Clone, Copy)]
struct FileTraits {
    device: u64,
    inode: u64,
    bytes: u64,
}

impl FilesInPlace {
    pub(super) fn new(home: &Path, connection: &Connection) -> Result<Self, OpenHomeError> {
        let database = home.join(JOURNAL);
        let files = [commit_count::path(home), wal_of(&database), database.clone()];
        let files = files.map(|path| WatchedFile { path, known: None });
        Ok(Self { files, version: version(connection)?, database })
    }

    /// Fails if a file is gone, or if another process has replaced or truncated it. Called before each transaction: a file that was
    /// cut grows again with the next page.
    pub(super) fn check(&mut self) -> Result<(), JournalFault> {
        self.files.iter_mut().filter(|file| file.known.is_some()).try_for_each(WatchedFile::check)
    }

    /// Fails if another process has written. Called when a transaction has begun: from then on none can.
    pub(super) fn check_version(&self, connection: &Connection) -> Result<(), JournalFault> {
        if version(connection)? == self.version {
            return Ok(());
        }
        Err(changed(&self.database))
    }

    /// Looks at files that are not known yet. Called after each commit, when all of them exist.
    pub(super) fn know(&mut self) -> Result<(), JournalFault> {
        self.files.iter_mut().filter(|file| file.known.is_none()).try_for_each(WatchedFile::check)
    }
}

impl WatchedFile {
    fn check(&mut self) -> Result<(), JournalFault> {
        let found = FileTraits::read(&self.path).ok_or_else(|| gone(&self.path))?;
        if let Some(known) = self.known {
            if (found.device, found.inode) != (known.device, known.inode) {
                return Err(gone(&self.path));
            }
            // We never cut it while it is open.
            if found.bytes < known.bytes {
                return Err(changed(&self.path));
            }
        }
        self.known = Some(found);
        Ok(())
    }
}

impl FileTraits {
    fn read(path: &Path) -> Option<Self> {
        let about = fs::symlink_metadata(path).ok()?;
        let (device, inode) = system::identity(&about);
        Some(Self { device, inode, bytes: about.len() })
    }
}

/// A file of the home was deleted or replaced while it was open.
fn gone(path: &Path) -> JournalFault {
    let reason = format!(
        "{} was deleted or replaced while the journal was open: what was written since then is lost; stop, restore the home, and resume",
        path.display()
    );
    JournalFault::Failed { reason }
}

/// A file of the home was changed by another process while it was open.
fn changed(path: &Path) -> JournalFault {
    let reason = format!(
        "{} was changed by another process while the journal was open: nothing was written since; stop, restore the home, and resume",
        path.display()
    );
    JournalFault::Failed { reason }
}

fn version(connection: &Connection) -> Result<i64, OpenHomeError> {
    connection
        .prepare_cached("PRAGMA data_version")
        .and_then(|mut version| version.query_row([], |row| row.get(0)))
        .map_err(|error| opening(connection, &error))
}
