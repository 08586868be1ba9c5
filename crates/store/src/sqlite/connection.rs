//! Opens connections to the journal's file. No file is opened through a link, and nothing that another program put into a
//! file's schema runs on them.
//!
//! When a process closes a file, POSIX drops all its locks on that file. SQLite's own VFS handles that;
//! [`open_still`] bypasses it, so it is used only while this process holds no lock: before a home is opened, and to
//! read one that cannot be locked. Nothing else in a process opens and closes the file.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::OpenHomeError;
use super::fault::from_sqlite_at;
use super::loss::keep_wal_on_close;
use super::read_only::beside;

/// SQLite's VFS without locks.
const WITHOUT_LOCKS: &std::ffi::CStr = c"unix-none";

/// Does not create the file: SQLite would create it readable for others.
pub(super) const WRITES: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);
/// For reading beside a writer.
pub(super) const READS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// The settings of every connection: a schema is data, and may be a stranger's. We have no triggers, and read no view.
const DEFENCES: [(DbConfig, bool); 6] = [
    (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
    (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
    (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
    (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
];

pub(super) fn open(file: &Path, flags: OpenFlags) -> Result<Connection, OpenHomeError> {
    let opened = Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW);
    defended(opened).map_err(|error| from_sqlite_at(file, &error))
}

fn defended(opened: rusqlite::Result<Connection>) -> rusqlite::Result<Connection> {
    let connection = opened?;
    for (setting, is_on) in DEFENCES {
        connection.set_db_config(setting, is_on)?;
    }
    Ok(connection)
}

/// A connection that reads the files as they are, creates none and takes no lock. The caller must make sure that
/// nothing writes meanwhile.
pub(super) fn open_still(file: &Path) -> Result<Connection, OpenHomeError> {
    let sqlite = |error| from_sqlite_at(file, &error);
    let flags = READS | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let has_log = std::fs::metadata(beside(file, "-wal")).is_ok_and(|log| log.len() > 0);
    if !has_log {
        let opened = Connection::open_with_flags(immutable(file), flags | OpenFlags::SQLITE_OPEN_URI);
        return defended(opened).map_err(sqlite);
    }
    let opened = Connection::open_with_flags_and_vfs(file, flags, WITHOUT_LOCKS);
    let connection = defended(opened).map_err(sqlite)?;
    // Without locks every connection believes that it is the last one, and the last one deletes a WAL file in which
    // it finds nothing, even a damaged one.
    keep_wal_on_close(&connection, true)?;
    // In exclusive mode SQLite keeps the WAL index in memory.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(sqlite)?;
    Ok(connection)
}

/// The URI of a database that does not change.
fn immutable(file: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in file.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}
