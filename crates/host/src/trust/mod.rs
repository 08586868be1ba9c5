//! What a file or a home may do only with the user's permission. A tree file, a project folder and a home in it may come
//! from a stranger; what may leave or start is said by a face, in the user's own folders, or in answer to a question.

mod accepted_loss;
pub mod allowed_hosts;
pub mod boxes;
pub mod egress;
pub mod file_answers;
pub mod foreign_home;
pub mod known_homes;
pub mod tree_marks;

use spinney_journal::JournalFault;

pub use self::accepted_loss::accept_loss;

use crate::exec::options::RunOptionsError;
use crate::home::HomeError;
use crate::home::tree_copies::UnreadCopy;
use crate::text_file::FileFault;
use crate::user::state_files::StateFileError;

/// Why it is unknown whether something is trusted, or why an answer cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The home cannot be opened.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Its journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// The user's state folder cannot be used.
    #[error(transparent)]
    State(#[from] StateFileError),
    /// A file of the home failed.
    #[error(transparent)]
    File(#[from] FileFault),
    /// What a tree was started from cannot be read.
    #[error(transparent)]
    Copy(#[from] UnreadCopy),
    /// What a run is continued with cannot be read.
    #[error(transparent)]
    Options(#[from] RunOptionsError),
}
