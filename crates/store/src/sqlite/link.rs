//! A connection to the journal's file, and the file itself, to have on the disk what was written when it suits us.
//!
//! When a process closes a file, POSIX takes away every lock that it has on it, SQLite's too. So all connections of a
//! process to a file share one handle; each holds it, and it is closed behind the last of them.
//!
//! No file is reached through a link.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OpenFlags};
use spinney_journal::JournalFault;

use super::fault::{from_io, from_sqlite_at};
use super::look::beside;
use super::loss::keep_wal_on_close;

/// SQLite's way to open files that takes no locks.
const WITHOUT_LOCKS: &std::ffi::CStr = c"unix-none";

/// The handles of this process. They are opened and closed under this lock only.
static HANDLES: Mutex<BTreeMap<PathBuf, Arc<File>>> = Mutex::new(BTreeMap::new());

/// A connection, and the handle of its file.
pub(super) struct Link {
    path: PathBuf,
    /// Gone only while this is dropped.
    ends: Option<(Connection, Arc<File>)>,
    /// Whether the connection closes the file without regard to locks that others of this process have.
    is_careless: bool,
}

impl Link {
    pub(super) fn open(file: &Path, flags: OpenFlags) -> Result<Self, JournalFault> {
        // It has no lock before it is used.
        let connection = Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW);
        Self::of(file, connection)
    }

    /// A connection that reads what lies there, makes no file beside it and takes no lock. It is right as long as nobody
    /// writes, and whoever uses it has to see to that.
    pub(super) fn open_still(file: &Path) -> Result<Self, JournalFault> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let has_log = std::fs::metadata(beside(file, "-wal")).is_ok_and(|log| log.len() > 0);
        if !has_log {
            let connection = Connection::open_with_flags(immutable(file), flags | OpenFlags::SQLITE_OPEN_URI);
            return Self::of(file, connection);
        }
        let connection = Connection::open_with_flags_and_vfs(file, flags, WITHOUT_LOCKS);
        let mut link = Self::of(file, connection)?;
        link.is_careless = true;
        // Without locks every connection believes to be the last one, and the last one deletes a write-ahead file that
        // it finds nothing in: also a damaged one.
        keep_wal_on_close(&link, true)?;
        // With the file to itself, SQLite keeps the index of the write-ahead file in memory.
        link.pragma_update(None, "locking_mode", "EXCLUSIVE")
            .map_err(|error| from_sqlite_at(file, &error))?;
        Ok(link)
    }

    fn of(file: &Path, connection: rusqlite::Result<Connection>) -> Result<Self, JournalFault> {
        let connection = connection.map_err(|error| from_sqlite_at(file, &error))?;
        let path = file.canonicalize().map_err(|error| from_io(file, &error))?;
        let handle = hold(&path).map_err(|error| from_io(file, &error))?;
        Ok(Self { path, ends: Some((connection, handle)), is_careless: false })
    }

    /// The file, by a path with no link in it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until what was written to the file is on the disk. SQLite waits for it again where that matters, and need
    /// not wait long then; so nothing is lost if this fails.
    pub(super) fn sync(&self) {
        if let Some((_, handle)) = &self.ends {
            let _ = handle.sync_data();
        }
    }
}

impl Deref for Link {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match &self.ends {
            Some((connection, _)) => connection,
            None => unreachable!("a link has its connection until it is dropped"),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some((connection, handle)) = self.ends.take() else { return };
        let careless = if self.is_careless {
            Some(connection)
        } else {
            drop(connection);
            None
        };
        let mut handles = handles();
        // This one's and the list's are the last.
        let is_last = Arc::strong_count(&handle) == 2;
        if is_last {
            handles.remove(&self.path);
        }
        match careless {
            Some(connection) if is_last => drop(connection),
            // Others have locks on the file: this one is never closed, which costs a handle and no more.
            Some(connection) => std::mem::forget(connection),
            None => {}
        }
        drop(handle);
    }
}

/// A database that nobody changes, as SQLite wants it named.
fn immutable(file: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in file.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}

/// The handle of a file, which somebody else may have.
fn hold(path: &Path) -> std::io::Result<Arc<File>> {
    let mut handles = handles();
    if let Some(handle) = handles.get(path) {
        return Ok(Arc::clone(handle));
    }
    let handle = Arc::new(File::open(path)?);
    handles.insert(path.to_owned(), Arc::clone(&handle));
    Ok(handle)
}

fn handles() -> MutexGuard<'static, BTreeMap<PathBuf, Arc<File>>> {
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(path: &Path) -> Option<usize> {
        handles().get(path).map(Arc::strong_count)
    }

    #[test]
    fn a_handle_is_closed_behind_the_last_connection() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("a.sqlite3");
        let first = Link::open(&file, OpenFlags::default()).unwrap();
        let path = file.canonicalize().unwrap();
        let second = Link::open(&file, OpenFlags::default()).unwrap();
        assert_eq!(held(&path), Some(3));
        drop(first);
        assert_eq!(held(&path), Some(2));
        assert!(second.execute_batch("CREATE TABLE t (a)").is_ok());
        drop(second);
        assert_eq!(held(&path), None);
        drop(Link::open(&file, OpenFlags::default()).unwrap());
        assert_eq!(held(&path), None);
    }
}
