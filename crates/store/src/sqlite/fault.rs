//! What SQLite and the file system say, as the journal's own faults.

use rusqlite::ErrorCode;
use spinney_kernel::port::journal::JournalFault;

/// A fault of SQLite.
pub(super) fn from_sqlite(error: &rusqlite::Error) -> JournalFault {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => JournalFault::DiskFull,
        Some(ErrorCode::ReadOnly) => JournalFault::ReadOnly,
        _ => failed(error),
    }
}

/// Any other fault.
pub(super) fn failed(error: &dyn std::error::Error) -> JournalFault {
    JournalFault::Failed { reason: error.to_string() }
}
