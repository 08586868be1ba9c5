//! A home on disk: which one a command means, its journal, and what lies beside the journal.

mod find;
pub(crate) mod ids;
mod open;
pub(crate) mod output_files;
pub(crate) mod private_files;
pub(crate) mod tree_copies;
pub(crate) mod tree_list;
pub(crate) mod workspaces;

pub(crate) use self::find::nearest;
pub(crate) use self::open::{accept_loss, accepts, look, settle, write, write_if_free, write_to_remove};
