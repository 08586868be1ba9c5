//! Working copies: an agent's own clone of a repository of the user, and what becomes of it (decision 0063).
//!
//! ```text
//! <home>/workspace/<tree>/<agent>/copy/…       the clone: the agent's, with its own git directory
//!                                 copy.json    what it is a copy of, and what was taken over; ours
//!                                 copy.lock    who uses it now
//! ```
//!
//! The repository is only written to by git with the repository's own git directory: references of ours, and packs that
//! were checked. Whatever an agent could write is read by git in a box, with a git directory that we made.

mod boxed_git;
mod changed_files;
mod commit_id;
mod copy_lock;
mod gate;
mod git;
mod ignore_rules;
mod making;
mod own_git;
mod record;
mod repository;
mod takeover;
mod tips;
mod working_copy;

pub use self::boxed_git::BoxedGitError;
pub use self::commit_id::{CommitId, NotACommitId};
pub(crate) use self::copy_lock::CopyLock;
pub use self::gate::WorkingCopyGate;
pub use self::git::{GitError, check_git};
pub use self::making::NoCopy;
pub(crate) use self::making::OpenCopy;
pub use self::record::{CopyTakeover, LeftNames, UntakenFiles};
pub use self::repository::{Repository, RepositoryError};
pub use self::takeover::TakeoverError;
pub use self::working_copy::{CopyDiff, WorkingCopy};
