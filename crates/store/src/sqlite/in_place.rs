//! Detects that files of an open journal were deleted or replaced. A process can keep writing to deleted files, and
//! everything that it confirms is lost when it ends.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use spinney_journal::JournalFault;

use super::commit_count;
use super::home_folder::JOURNAL;
use super::loss::wal_of;

/// The files of an open journal, as they were when it was opened.
pub(super) struct FilesInPlace {
    files: [(PathBuf, Option<(u64, u64)>); 3],
}

impl FilesInPlace {
    pub(super) fn new(home: &Path) -> Self {
        let database = home.join(JOURNAL);
        let files = [commit_count::path(home), wal_of(&database), database];
        Self { files: files.map(|path| (path, None)) }
    }

    /// Fails if a file is gone or replaced. Called after each commit, when all of them exist.
    pub(super) fn check(&mut self) -> Result<(), JournalFault> {
        for (path, known) in &mut self.files {
            let found = fs::symlink_metadata(&*path).map(|found| (found.dev(), found.ino()));
            match (found, &known) {
                (Ok(found), None) => *known = Some(found),
                (Ok(found), Some(before)) if found == *before => {}
                (Ok(_) | Err(_), _) => return Err(JournalFault::Gone { path: path.display().to_string() }),
            }
        }
        Ok(())
    }
}
