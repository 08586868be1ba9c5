//! A home on disk: which one is meant, its journal, and what is beside the journal.

mod find;
pub mod ids;
pub mod old_copies;
mod open;
pub mod output_files;
pub mod pending_folders;
pub mod side_journals;
pub mod tree_copies;
pub mod working_copies;
pub mod workspaces;

pub use self::find::{HOME, nearest};
pub use self::open::{
    HomeError, HomeUse, check, open_read_only, open_unchanged, open_writable, open_writable_if_free,
    open_writable_to_remove, open_writable_to_start, settle,
};
pub use crate::inside;
