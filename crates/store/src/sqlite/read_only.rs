//! Reads a home that cannot be written: on a read-only or full disk, or another user's.
//!
//! Connections to a database with a WAL file share an index of it, in a file that the first one creates. If that file
//! cannot be created, nothing is writing the database, because a writer would have created it. Then the files are read
//! as they are, without a lock, and the index stays in this process. If a writer starts meanwhile, the files change,
//! and the read is repeated.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use spinney_journal::JournalFault;

use super::OpenHomeError;
use super::connection::{READS, open, open_still};
use super::fault::from_sqlite_at;
use super::home_folder::HomeFolder;
use super::{commit_count, loss, not_cut, not_foreign, schema};
use crate::system;

/// How often a read is repeated because files changed.
const TRIES_MAX: u32 = 10;
/// SQLite's page cache of one reader. Journals are read from front to back, so a page is rarely needed twice, and with
/// SQLite's default of 2 MiB the pool of readers would take 8 MiB for nothing.
const CACHE_KIB: i32 = 256;

pub(super) struct Reader {
    home: PathBuf,
    journal: PathBuf,
    connection: Connection,
    /// The files' metadata when they were opened without a lock.
    still: Option<Files>,
}

/// Metadata of the journal's files: every write changes one of them.
#[derive(PartialEq, Eq)]
struct Files([Option<Traits>; 3]);

#[derive(PartialEq, Eq)]
struct Traits {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Files {
    fn now(journal: &Path) -> Self {
        let about = |ending: &str| {
            let about = fs::symlink_metadata(beside(journal, ending)).ok()?;
            let (_, inode) = system::identity(&about);
            Some(Traits { inode, bytes: about.len(), modified: system::modified(&about) })
        };
        Self(["", "-wal", "-shm"].map(about))
    }
}

impl Reader {
    pub(super) fn open(home: &Path) -> Result<Self, OpenHomeError> {
        let folder = HomeFolder::to_look(home)?;
        let journal = folder.journal();
        not_cut(&journal)?;
        if !beside(&journal, "-shm").exists() {
            // Do not create files beside a foreign database.
            not_foreign(&journal)?;
            if folder.is_others() {
                return Self::still(home, &journal);
            }
        }
        match Self::shared(home, &journal) {
            Err(fault) if is_for_want_of_writing(&fault) => match Self::still(home, &journal) {
                Err(other) if is_for_want_of_writing(&other) => Err(fault),
                opened => opened,
            },
            opened => opened,
        }
    }

    /// Runs `read` on one snapshot.
    pub(super) fn read<T>(
        &mut self,
        read: impl Fn(&Connection) -> Result<T, JournalFault>,
    ) -> Result<T, JournalFault> {
        for _ in 0..TRIES_MAX {
            let found = read(&self.connection);
            match &self.still {
                None => return found,
                Some(still) if *still == Files::now(&self.journal) => return found,
                Some(_) => {}
            }
            *self = Self::open(&self.home)?;
        }
        Err(OpenHomeError::Busy { path: self.home.display().to_string() }.into())
    }

    fn shared(home: &Path, journal: &Path) -> Result<Self, OpenHomeError> {
        Self::checked(home, journal, None, || open(journal, READS))
    }

    fn still(home: &Path, journal: &Path) -> Result<Self, OpenHomeError> {
        Self::checked(home, journal, Some(Files::now(journal)), || open_still(journal))
    }

    fn checked(
        home: &Path,
        journal: &Path,
        still: Option<Files>,
        open: impl FnOnce() -> Result<Connection, OpenHomeError>,
    ) -> Result<Self, OpenHomeError> {
        let recorded = commit_count::recorded(home)?;
        let connection = open()?;
        // A negative number is in KiB, not in pages.
        let bounded = connection.pragma_update(None, "cache_size", -CACHE_KIB);
        bounded.map_err(|error| from_sqlite_at(journal, &error))?;
        schema::ours(&connection)?;
        loss::check(home, recorded, &connection)?;
        schema::check(&connection, home)?;
        Ok(Self { home: home.to_owned(), journal: journal.to_owned(), connection, still })
    }
}

/// Whether a connection failed because it could not write.
fn is_for_want_of_writing(fault: &OpenHomeError) -> bool {
    matches!(fault, OpenHomeError::NotAllowed { .. } | OpenHomeError::Full | OpenHomeError::Failed { .. })
}

/// A file that SQLite puts beside the journal.
pub(super) fn beside(journal: &Path, ending: &str) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::super::connection::WRITES;
    use super::super::{Access, SqliteJournal};
    use super::*;

    const ONE_MORE: &str = "INSERT INTO blobs (hash, bytes) SELECT randomblob(8), x'00'";

    fn look(home: &Path) -> Reader {
        let journal = HomeFolder::to_look(home).unwrap().journal();
        Reader::still(home, &journal).unwrap()
    }

    fn is_still(reader: &Reader) -> bool {
        reader.still.is_some()
    }

    fn blobs(reader: &mut Reader) -> i64 {
        let count = |connection: &Connection| {
            Ok(connection.query_row("SELECT count(*) FROM blobs", [], |row| row.get(0)).unwrap())
        };
        reader.read(count).unwrap()
    }

    #[test]
    fn a_look_without_a_lock_sees_what_is_written_meanwhile() {
        let home = tempfile::tempdir().unwrap();
        drop(SqliteJournal::open(home.path(), Access::Write).unwrap());
        let mut reader = look(home.path());
        assert_eq!((blobs(&mut reader), is_still(&reader)), (0, true));
        let journal = SqliteJournal::open(home.path(), Access::Write).unwrap();
        let writer = open(&reader.journal, WRITES).unwrap();
        writer.execute_batch(ONE_MORE).unwrap();
        assert_eq!((blobs(&mut reader), is_still(&reader)), (1, false));
        writer.execute_batch(ONE_MORE).unwrap();
        assert_eq!(blobs(&mut reader), 2);
        drop((writer, journal));
        assert_eq!(blobs(&mut reader), 2);
    }

    #[test]
    fn what_a_dead_process_wrote_ahead_is_seen_without_a_lock() {
        let (home, dead) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let journal = SqliteJournal::open(home.path(), Access::Write).unwrap();
        let file = HomeFolder::to_look(home.path()).unwrap().journal();
        let writer = open(&file, WRITES).unwrap();
        writer.execute_batch(ONE_MORE).unwrap();
        for ending in ["", "-wal"] {
            let name = beside(Path::new("journal.sqlite3"), ending);
            fs::copy(home.path().join(&name), dead.path().join(&name)).unwrap();
        }
        drop((writer, journal));
        let mut reader = look(dead.path());
        assert_eq!((blobs(&mut reader), is_still(&reader)), (1, true));
        assert_eq!(fs::read_dir(dead.path()).unwrap().count(), 2);
        // A writer opens it beside readers without a lock.
        let journal = SqliteJournal::open(dead.path(), Access::Write).unwrap();
        let mut other = look(dead.path());
        drop(reader);
        let writer = open(&other.journal, WRITES).unwrap();
        writer.execute_batch(ONE_MORE).unwrap();
        assert_eq!((blobs(&mut other), is_still(&other)), (2, false));
        drop(journal);
    }
}
