//! The number of confirmed commits, in a small file beside the database.
//!
//! SQLite stops reading its WAL file at the first bad frame and treats what is left as the whole database. Nothing
//! inside the database can show that something is missing. So each transaction has a number, which it stores, and
//! after COMMIT, before any caller is answered, the same number is written here. A database that counts less than
//! this file has lost confirmed commits; one that counts more was killed between the two writes.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use spinney_journal::JournalFault;
use spinney_kernel::primitives::Durability;

use super::fault::{from_io, from_sqlite, opening};
use super::home_folder::refused;
use super::schema::{self, COMMITS_VERSION, NUMBERED_VERSION};
use super::{HomeRefusal, OpenHomeError};
use crate::system;

const FILE: &str = "journal.head";
const MAGIC: [u8; 8] = *b"spinney1";
/// Magic number, count, and a truncated hash over both: within one sector, so writes are atomic.
const RECORD_BYTES: usize = 32;
const HASHED_BYTES: usize = 16;
/// Commits with durability `full` between two flushes of the file.
const FLUSH_EVERY: u64 = 64;

/// Open while its home is written.
pub(super) struct CommitCount {
    file: File,
    path: PathBuf,
}

/// The content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    Missing,
    /// It is not what was written.
    Unreadable,
    Count(u64),
}

impl CommitCount {
    /// Opens the file for writing and creates it if needed.
    pub(super) fn open(home: &Path) -> Result<Self, OpenHomeError> {
        let path = path(home);
        match system::open_private(&path) {
            Ok(file) => Ok(Self { file, path }),
            Err(error) => Err(from_io(&path, &error)),
        }
    }

    /// Records the number of confirmed commits. It survives a kill. Of `full` commits only every 64th is flushed: a
    /// flush for each would double the time of a commit. A power cut may lose the last few counts; a count that is
    /// too low only means that damage to exactly these commits is not detected.
    pub(super) fn write(&self, count: u64, durability: Durability) -> Result<(), OpenHomeError> {
        let is_flushed = durability == Durability::Full && count.is_multiple_of(FLUSH_EVERY);
        if is_flushed {
            self.write_through(count)
        } else {
            self.put(count).map_err(|error| self.fault(&error))
        }
    }

    /// The same, flushed to disk on return.
    pub(super) fn write_through(&self, count: u64) -> Result<(), OpenHomeError> {
        self.put(count).and_then(|()| self.file.sync_data()).map_err(|error| self.fault(&error))
    }

    fn put(&self, count: u64) -> io::Result<()> {
        system::overwrite(&self.file, &record(count))
    }

    fn fault(&self, error: &io::Error) -> OpenHomeError {
        from_io(&self.path, error)
    }
}

pub(super) fn path(home: &Path) -> PathBuf {
    home.join(FILE)
}

/// Reads the file of a home. Read it before the database: a commit that is recorded here is in the database by then.
pub(super) fn recorded(home: &Path) -> Result<Recorded, OpenHomeError> {
    let path = path(home);
    let mut bytes = Vec::with_capacity(RECORD_BYTES);
    let opened = system::open_unlinked(&path);
    let plain = opened.and_then(|file| match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    });
    let read = plain.and_then(|file| file.take(RECORD_BYTES as u64 + 1).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Recorded::Missing),
        Err(error) if system::is_link_refused(&error) => Err(refused(&path, HomeRefusal::Link)),
        Err(error) => Err(from_io(&path, &error)),
        // A process that died between creating the file and its first write left it empty.
        Ok(0) => Ok(Recorded::Missing),
        Ok(_) => Ok(read_record(&bytes).map_or(Recorded::Unreadable, Recorded::Count)),
    }
}

/// The database's own count; 0 if it has no tables yet. Heads have the numbers of the commits that wrote them, and
/// `commits` has that of the last commit that changed anything else.
pub(super) fn counted(connection: &Connection) -> Result<u64, OpenHomeError> {
    let version = schema::version(connection)?;
    let count = |sql| {
        let found = connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
        found.map(|count| count.unwrap_or(0).max(0) as u64).map_err(|error| opening(connection, &error))
    };
    let changes = if version >= COMMITS_VERSION { count("SELECT count FROM commits")? } else { 0 };
    let appends = if version >= NUMBERED_VERSION { count("SELECT max(number) FROM heads")? } else { 0 };
    Ok(changes.max(appends))
}

/// Counts a commit that is not an append, in its transaction.
pub(super) fn set(connection: &Connection, count: u64) -> Result<(), JournalFault> {
    connection
        .prepare_cached("UPDATE commits SET count = ?1")
        .and_then(|mut update| update.execute([count as i64]))
        .map(drop)
        .map_err(|error| from_sqlite(connection, &error))
}

fn record(count: u64) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..HASHED_BYTES].copy_from_slice(&count.to_le_bytes());
    let hash = blake3::hash(&bytes[..HASHED_BYTES]);
    bytes[HASHED_BYTES..].copy_from_slice(&hash.as_bytes()[..RECORD_BYTES - HASHED_BYTES]);
    bytes
}

fn read_record(bytes: &[u8]) -> Option<u64> {
    let count = u64::from_le_bytes(bytes.get(8..HASHED_BYTES)?.try_into().ok()?);
    (bytes == record(count)).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_reads_back_and_every_flipped_bit_is_found() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(recorded(home.path()), Ok(Recorded::Missing));
        let count = CommitCount::open(home.path()).unwrap();
        assert_eq!(recorded(home.path()), Ok(Recorded::Missing), "made, and never written");
        count.write_through(0x0123_4567_89ab).unwrap();
        assert_eq!(recorded(home.path()), Ok(Recorded::Count(0x0123_4567_89ab)));
        let whole = std::fs::read(path(home.path())).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(path(home.path()), bytes).unwrap();
            assert_eq!(recorded(home.path()), Ok(Recorded::Unreadable), "bit {bit}");
        }
        for length in 1..whole.len() {
            std::fs::write(path(home.path()), &whole[..length]).unwrap();
            assert_eq!(recorded(home.path()), Ok(Recorded::Unreadable), "{length} bytes");
        }
    }
}
