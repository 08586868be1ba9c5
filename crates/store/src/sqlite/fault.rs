//! Converts errors of SQLite and the file system to journal faults: each names the file and what to do.

use spinney_journal::JournalFault;
use std::io;
use std::path::Path;

use super::OpenHomeError;

use rusqlite::{Connection, ErrorCode};

/// For a connection of an open journal.
pub(super) fn from_sqlite(connection: &Connection, error: &rusqlite::Error) -> JournalFault {
    opening(connection, error).into()
}

/// For a connection that is being opened.
pub(super) fn opening(connection: &Connection, error: &rusqlite::Error) -> OpenHomeError {
    from_sqlite_at(Path::new(connection.path().unwrap_or_default()), error)
}

pub(super) fn from_sqlite_at(file: &Path, error: &rusqlite::Error) -> OpenHomeError {
    let (path, reason) = (file.display().to_string(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => OpenHomeError::Full,
        Some(ErrorCode::CannotOpen) if let Err(error) = std::fs::File::open("/dev/null") => {
            from_io(file, &error)
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            OpenHomeError::NotAllowed { path, reason }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenHomeError::Busy { path },
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
        Some(_) => OpenHomeError::Failed { reason: format!("{path}: {reason}") },
    }
}

/// The fault of an unreadable file, with SQLite's command to recover it.
pub(super) fn damaged_file(file: &Path, reason: &str) -> OpenHomeError {
    let path = file.display().to_string();
    // The path, quoted for a shell.
    let word = path.replace('\'', r"'\''");
    let salvage = format!("`sqlite3 '{word}' .recover`");
    OpenHomeError::Damaged { path, reason: reason.to_owned(), salvage }
}

pub(super) fn from_io(path: &Path, error: &io::Error) -> OpenHomeError {
    let (path, reason) = (path.display().to_string(), error.to_string());
    let is = |kinds: &[io::ErrorKind]| kinds.contains(&error.kind());
    if is(&[io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem]) {
        OpenHomeError::NotAllowed { path, reason }
    } else if is(&[io::ErrorKind::NotADirectory, io::ErrorKind::AlreadyExists]) {
        OpenHomeError::NotAHome { path }
    } else if is(&[io::ErrorKind::NotFound]) {
        OpenHomeError::NoHome { path }
    } else if is(&[io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded]) {
        OpenHomeError::Full
    } else {
        OpenHomeError::Failed { reason: format!("{path}: {reason}") }
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
                OpenHomeError::NotAllowed { path: path(), reason: reason(io::ErrorKind::PermissionDenied) },
            ),
            (io::ErrorKind::NotADirectory, OpenHomeError::NotAHome { path: path() }),
            (io::ErrorKind::NotFound, OpenHomeError::NoHome { path: path() }),
            (io::ErrorKind::StorageFull, OpenHomeError::Full),
            (io::ErrorKind::TimedOut, OpenHomeError::Failed { reason: "home: timed out".to_owned() }),
        ];
        for (kind, fault) in cases {
            assert_eq!(from_io(Path::new("home"), &io::Error::from(kind)), fault);
        }
    }
}
