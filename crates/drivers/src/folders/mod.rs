//! Folders of the user that agents were granted: which may be granted at all, what in them stays hidden or may only be
//! read, and how they are opened without following a link. Commands and file tools both ask here, so they agree.

mod git;
mod git_config;
mod hidden;
mod open;
mod problem;
mod protected;
mod repository;

pub use self::git::UserGit;
pub(crate) use self::git::{GitPaths, REPOSITORY};
pub use self::hidden::HiddenFolders;
pub(crate) use self::hidden::HiddenIds;
pub(crate) use self::open::open_folder;
pub use self::problem::{FolderProblem, check_folder};
pub(crate) use self::protected::{PROTECTED, is_protected, is_protected_file, protected_in};
pub(crate) use self::repository::{HEAD, RepositoryNames, is_dangerous};
