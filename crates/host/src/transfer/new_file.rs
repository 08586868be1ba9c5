//! The new file of an export, which gets its name when it is whole. A process that is killed before that leaves it under a hidden
//! name, and the next export to that folder or import from it removes it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::trees_file::FORMAT;
use crate::system::files;
use crate::system::private_files::{self, Links};
use crate::text_file::{FileAction, FileFault};

const SUFFIX: &str = ".unfinished-export";
/// How often another process may remove the file between its creation and its lock.
const TRIES_MAX: usize = 8;

/// A file that gets its name when it is whole. Without that, nothing of it stays.
pub(super) struct NewFile {
    file: PathBuf,
    hidden: PathBuf,
    /// Locked until it is whole: others see that it is in use.
    pub(super) opened: File,
}

/// Why the whole file did not get its name.
pub(super) enum Unfinished {
    /// There is another file of that name.
    Exists(PathBuf),
    /// It cannot be written.
    Fault(FileFault),
}

impl NewFile {
    /// Creates it beside its later name.
    pub(super) fn make(file: &Path) -> Result<Self, FileFault> {
        remove_unfinished(folder_of(file));
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let hidden = file.with_file_name(format!(".{name}.{}{SUFFIX}", std::process::id()));
        let opened = make_locked(&hidden).map_err(FileFault::when(FileAction::Write, file))?;
        Ok(Self { file: file.to_owned(), hidden, opened })
    }

    pub(super) fn fault(&self, why: io::Error) -> FileFault {
        FileFault::when(FileAction::Write, &self.file)(why)
    }

    /// Gives it its name.
    pub(super) fn finish(self) -> Result<(), Unfinished> {
        let fault = |error| Unfinished::Fault(self.fault(error));
        self.opened.sync_all().map_err(fault)?;
        files::rename_without_replacing(&self.hidden, &self.file).map_err(|error| match error {
            error if error.kind() == ErrorKind::AlreadyExists => Unfinished::Exists(self.file.clone()),
            error => fault(error),
        })?;
        private_files::flush_folder_of(&self.file).map_err(fault)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // It has another name if it is whole.
        let _ = fs::remove_file(&self.hidden);
    }
}

/// Another process may take a file for one that is left, until it is locked.
fn make_locked(hidden: &Path) -> io::Result<File> {
    for _ in 0..TRIES_MAX {
        let opened = private_files::create(hidden)?;
        opened.lock()?;
        if !files::is_unlinked(&opened)? {
            return Ok(opened);
        }
    }
    Err(io::Error::new(ErrorKind::ResourceBusy, "other processes keep removing it"))
}

/// The folder that a file is in.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what killed exports of this user left in a folder. What cannot be removed stays: nothing needs it gone.
pub(super) fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !is_name_of_ours(&entry.file_name()) {
            continue;
        }
        let path = entry.path();
        if let Err(error) = remove_if_left(&path) {
            tracing::debug!("{} was not removed: {error}", path.display());
        }
    }
}

fn is_name_of_ours(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let before = name.strip_prefix('.').and_then(|name| name.strip_suffix(SUFFIX));
    let pid = before.and_then(|before| before.rsplit_once('.'));
    pid.is_some_and(|(of, pid)| !of.is_empty() && pid.parse::<u32>().is_ok())
}

/// Removes a file that an export began and no process writes.
fn remove_if_left(path: &Path) -> io::Result<()> {
    let mut opened = private_files::plain(path, Links::Refuse)?;
    let is_free = opened.try_lock().is_ok();
    if is_free && files::is_ours(&opened.metadata()?) && begins_as_ours(&mut opened)? {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Whether a file is the beginning of one of trees: its first bytes may not be written yet.
fn begins_as_ours(opened: &mut File) -> io::Result<bool> {
    let mut begin = Vec::new();
    opened.take(FORMAT.len() as u64).read_to_end(&mut begin)?;
    Ok(FORMAT.starts_with(&begin))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Issue 36: a killed export left its hidden file for ever.
    #[test]
    fn the_file_of_a_killed_export_is_removed_and_no_other() {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at(".oak.trees.12.unfinished-export"), b"").unwrap();
        fs::write(at(".oak.trees.13.unfinished-export"), [FORMAT, b"T"].concat()).unwrap();
        let kept = [".elm.14.unfinished-export", ".oak.trees.x.unfinished-export", "oak.trees"];
        for name in kept {
            fs::write(at(name), b"mine").unwrap();
        }
        let writing = NewFile::make(&at("ash.trees")).unwrap();
        let other = NewFile::make(&at("yew.trees")).unwrap();
        remove_unfinished(folder.path());
        assert!(writing.hidden.exists() && other.hidden.exists(), "they are in use");
        assert!(writing.finish().is_ok());
        drop(other);
        let expected: Vec<&str> = kept.iter().chain(["ash.trees"].iter()).copied().collect();
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        expected.sort();
        assert_eq!(names(folder.path()), expected);
    }
}
