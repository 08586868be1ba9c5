//! What a tree of an older release is resumed from: its file and scripts as they were when it started, in a folder beside the
//! journal. The journals of newer trees have them.
//!
//! ```text
//! <home>/trees/<tree>/kept.json        which model answers from which script, and which one its provider answers
//!                     tree.yaml        the tree file, in its own format
//!                     script-1.yaml …  the scripts
//!                     checksums        the hash of each file, as `b3sum --check` reads it
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use spinney::tree_file::FILE_BYTES_MAX;
use spinney_drivers::scripted::SCRIPT_BYTES_MAX;
use spinney_kernel::primitives::{BlobHash, TreeId};
use spinney_store::layout::TREES;

use super::pending_folders::{self, copies, unfinished_copies};
use super::tree_copies::{ChangedCopy, LIST, SourceTexts};
use crate::system::private_files::{self, Links};
use crate::text_file::{self, FileAction, FileFault};

const CHECKSUMS: &str = "checksums";
/// Far more models than a tree may have.
const LIST_BYTES_MAX: u64 = 1024 * 1024;
const KEPT_BYTES_MAX: u64 = {
    let most = if SCRIPT_BYTES_MAX > FILE_BYTES_MAX { SCRIPT_BYTES_MAX } else { FILE_BYTES_MAX } as u64;
    if most > LIST_BYTES_MAX { most } else { LIST_BYTES_MAX }
};

/// Why the folder of an older tree cannot be copied for a branch.
#[derive(Debug, thiserror::Error)]
pub enum UncopiedFiles {
    /// The branch cannot be marked.
    #[error(transparent)]
    File(#[from] FileFault),
    /// A file is not as it was, or cannot be written.
    #[error("cannot copy the files in {} for a branch", folder.display())]
    Uncopied {
        /// From where.
        folder: PathBuf,
        /// The cause.
        #[source]
        why: ChangedCopy,
    },
}

/// Stores for a branch what its origin was started from, all or nothing. The branch is marked until it is settled.
pub fn copy(home: &Path, from: TreeId, to: TreeId) -> Result<(), UncopiedFiles> {
    pending_folders::mark(home, to)?;
    let (from, unfinished) = (copies(home, from), unfinished_copies(home, to));
    let copied = || -> Result<(), ChangedCopy> {
        private_files::folder(&unfinished)?;
        for (file, text) in unchanged(&from)?.texts {
            private_files::write(&unfinished.join(file), text.as_bytes())?;
        }
        let checksums = read_kept(&from, CHECKSUMS, LIST_BYTES_MAX)?;
        private_files::write(&unfinished.join(CHECKSUMS), checksums.as_bytes())?;
        Ok(finish(home, &unfinished, &copies(home, to))?)
    };
    copied().map_err(|why| UncopiedFiles::Uncopied { folder: from.clone(), why })
}

/// Renames a complete folder to its final name. It must be on disk before its tree starts: the tree may survive a loss of
/// power.
fn finish(home: &Path, unfinished: &Path, kept: &Path) -> io::Result<()> {
    private_files::flush_all(unfinished)?;
    fs::rename(unfinished, kept)?;
    private_files::flush(&home.join(TREES))?;
    private_files::flush(home)
}

/// The hash of what a tree is started from. None if nothing is kept.
pub fn fingerprint(home: &Path, tree: TreeId) -> Result<Option<BlobHash>, FileFault> {
    let path = copies(home, tree).join(CHECKSUMS);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let checksums = text_file::read(&path, LIST_BYTES_MAX, Links::Refuse)
        .map_err(FileFault::when(FileAction::Read, &path))?;
    Ok(Some(BlobHash::digest(checksums.as_bytes())))
}

/// The list of a tree's files, unchecked. None if it cannot be read.
pub(super) fn list(home: &Path, tree: TreeId) -> Option<String> {
    text_file::read(&copies(home, tree).join(LIST), LIST_BYTES_MAX, Links::Refuse).ok()
}

/// The files of a tree. Answers from a script that was changed would be another tree's: what is not as it was when the tree
/// started is refused.
pub(super) fn read(home: &Path, tree: TreeId) -> Result<SourceTexts, ChangedCopy> {
    unchanged(&copies(home, tree))
}

fn unchanged(folder: &Path) -> Result<SourceTexts, ChangedCopy> {
    let mut texts = BTreeMap::new();
    let checksums = read_kept(folder, CHECKSUMS, LIST_BYTES_MAX)?;
    for line in checksums.lines() {
        let wrong = || ChangedCopy::Checksums { line: line.to_owned() };
        let (checksum, file) = line.split_once("  ").ok_or_else(wrong)?;
        if Path::new(file).file_name().is_none_or(|plain| plain != file) {
            return Err(wrong());
        }
        let text = read_kept(folder, file, KEPT_BYTES_MAX)?;
        if BlobHash::digest(text.as_bytes()).as_str() != checksum {
            return Err(ChangedCopy::Changed { file: file.to_owned() });
        }
        texts.insert(file.to_owned(), text);
    }
    Ok(SourceTexts { texts, source: BlobHash::digest(checksums.as_bytes()) })
}

fn read_kept(folder: &Path, file: &str, bytes_max: u64) -> Result<String, ChangedCopy> {
    text_file::read(&folder.join(file), bytes_max, Links::Refuse)
        .map_err(|why| ChangedCopy::Unread { file: file.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::private_files::FLUSHED;

    /// A branch may survive a loss of power, so its files are on the disk before it starts.
    #[test]
    fn the_files_of_a_branch_are_on_the_disk_before_it_starts() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let (from, to) = (TreeId::new([7; 16]), TreeId::new([8; 16]));
        fs::create_dir_all(copies(&home, from)).unwrap();
        fs::write(copies(&home, from).join(LIST), "{}").unwrap();
        let checksums = format!("{}  {LIST}\n", BlobHash::digest(b"{}"));
        fs::write(copies(&home, from).join(CHECKSUMS), checksums).unwrap();
        FLUSHED.take();
        copy(&home, from, to).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        let mut names: Vec<String> = FLUSHED.take().iter().map(name).collect();
        names.sort();
        let unfinished = format!(".unfinished-{to}");
        assert_eq!(names, [unfinished.as_str(), CHECKSUMS, "home", LIST, TREES]);
        assert_eq!(fingerprint(&home, from).unwrap(), fingerprint(&home, to).unwrap());
    }
}
