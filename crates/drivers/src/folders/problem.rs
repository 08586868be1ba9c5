//! Why a folder of the user cannot be granted.

use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::io::Errno;
use spinney_kernel::definition::FolderAccess;

use super::hidden::HiddenFolders;
use super::open::open_folder;
use super::protected::protected_in;
use super::repository::RepositoryNames;

/// Not files, but processes, devices and sockets of the machine.
const SYSTEM: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

/// Why a folder cannot be granted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderProblem {
    /// It is not absolute, or everything.
    #[error("cannot be granted: name another folder")]
    Path,
    /// It has no files of the user.
    #[error("is a system folder: grant another one")]
    System,
    /// It is, or is in, a folder that stays hidden.
    #[error("is in the home or in Spinney's settings, which agents may not see")]
    Hidden,
    /// It is, or is in, something that is only read.
    #[error(
        "is in `{name}`, which agents may not write to: grant it for reading, or grant a folder above it"
    )]
    Protected {
        /// The name that is protected.
        name: String,
    },
    /// It is a repository without files of its own.
    #[error("is a git directory, which agents may not write to: grant it for reading")]
    GitDirectory,
    /// There is nothing.
    #[error("does not exist")]
    NotFound,
    /// It is a file, or a link is in its path.
    #[error("is not a folder, or its path contains a link")]
    NotAFolder,
    /// The operating system does not open it.
    #[error("cannot be opened: {0}")]
    Io(io::Error),
}

/// Refuses a folder that must not be granted, that is not there, or whose path has a link in it.
///
/// # Errors
/// Why.
pub fn check_folder(path: &Path, access: FolderAccess, hidden: &HiddenFolders) -> Result<(), FolderProblem> {
    if !path.is_absolute() || path.parent().is_none() {
        return Err(FolderProblem::Path);
    }
    if SYSTEM.iter().any(|system| path.starts_with(system)) {
        return Err(FolderProblem::System);
    }
    if hidden.contain(path) {
        return Err(FolderProblem::Hidden);
    }
    if let Some(name) = protected_in(path).filter(|_| access == FolderAccess::Write) {
        return Err(FolderProblem::Protected { name: name.to_string_lossy().into_owned() });
    }
    match open_folder(path) {
        Ok(_) if access == FolderAccess::Write && RepositoryNames::at(path).are_of_repository() => {
            Err(FolderProblem::GitDirectory)
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(FolderProblem::NotFound),
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::NOTDIR | Errno::LOOP)) => {
            Err(FolderProblem::NotAFolder)
        }
        Err(error) => Err(FolderProblem::Io(error)),
    }
}
