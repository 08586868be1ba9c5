//! Folders of the user that agents were granted: which may be granted at all, what in them stays hidden or may only be
//! read, and how they are opened without following a link. Commands and file tools both ask here, so they agree.

mod git;
mod hidden;
mod open;
mod problem;
mod protected;

pub(crate) use self::git::git_paths;
pub use self::hidden::HiddenFolders;
pub(crate) use self::hidden::HiddenIds;
pub(crate) use self::open::open_folder;
pub use self::problem::{FolderProblem, check_folder};
pub(crate) use self::protected::{PROTECTED, is_protected, protected_in};
