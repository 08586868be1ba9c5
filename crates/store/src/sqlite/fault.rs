//! Converts errors of SQLite and the file system to journal faults: each names the file and what to do.

use std::io;
use std::path::Path;

use rusqlite::{Connection, ErrorCode};
use spinney_journal::JournalFault;

pub(super) fn from_sqlite(connection: &Connection, error: &rusqlite::Error) -> JournalFault {
    from_sqlite_at(Path::new(connection.path().unwrap_or_default()), error)
}

pub(super) fn from_sqlite_at(file: &Path, error: &rusqlite::Error) -> JournalFault {
    let (path, reason) = (file.display().to_string(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => JournalFault::DiskFull,
        Some(ErrorCode::CannotOpen) if let Err(error) = std::fs::File::open("/dev/null") => {
            from_io(file, &error)
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            JournalFault::NotAllowed { path, reason }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => JournalFault::Busy { path },
        // Our statements are fixed: if they do not match the tables, or a value has another type, the file is
        // damaged.
        Some(
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::Unknown
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch,
        )
        | None => damaged_file(file, &reason),
        Some(_) => JournalFault::Failed { reason: format!("{path}: {reason}") },
    }
}

/// The fault of an unreadable file, with SQLite's command to recover it.
pub(super) fn damaged_file(file: &Path, reason: &str) -> JournalFault {
    let path = file.display().to_string();
    // The path, quoted for a shell.
    let word = path.replace('\'', r"'\''");
    let salvage = Some(format!("`sqlite3 '{word}' .recover` saves what is left"));
    JournalFault::DamagedFile { path, reason: reason.to_owned(), salvage }
}

pub(super) fn from_io(path: &Path, error: &io::Error) -> JournalFault {
    let (path, reason) = (path.display().to_string(), error.to_string());
    let is = |kinds: &[io::ErrorKind]| kinds.contains(&error.kind());
    if is(&[io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem]) {
        JournalFault::NotAllowed { path, reason }
    } else if is(&[io::ErrorKind::NotADirectory, io::ErrorKind::AlreadyExists]) {
        JournalFault::NotAHome { path }
    } else if is(&[io::ErrorKind::NotFound]) {
        JournalFault::NoHome { path }
    } else if is(&[io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded]) {
        JournalFault::DiskFull
    } else {
        JournalFault::Failed { reason: format!("{path}: {reason}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_io_error_has_its_own_fault() {
        let path = || "home".to_owned();
        let reason = |kind: io::ErrorKind| io::Error::from(kind).to_string();
        let cases = [
            (
                io::ErrorKind::PermissionDenied,
                JournalFault::NotAllowed { path: path(), reason: reason(io::ErrorKind::PermissionDenied) },
            ),
            (io::ErrorKind::NotADirectory, JournalFault::NotAHome { path: path() }),
            (io::ErrorKind::NotFound, JournalFault::NoHome { path: path() }),
            (io::ErrorKind::StorageFull, JournalFault::DiskFull),
            (io::ErrorKind::TimedOut, JournalFault::Failed { reason: "home: timed out".to_owned() }),
        ];
        for (kind, fault) in cases {
            assert_eq!(from_io(Path::new("home"), &io::Error::from(kind)), fault);
        }
    }
}
