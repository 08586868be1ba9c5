//! A home on disk: which one is meant, its journal, and what lies beside the journal.

mod find;
pub mod ids;
pub mod old_copies;
mod open;
pub mod output_files;
pub mod pending_folders;
pub mod side_journals;
pub mod tree_copies;
pub mod workspaces;

pub use self::find::{HOME, nearest};
pub use self::open::{
    HomeError, HomeUse, check, look, look_unchanged, settle, write, write_if_free, write_to_remove,
    write_to_start,
};
pub use crate::inside;
