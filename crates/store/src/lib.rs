//! Remembers: implementations of the journal port. Nothing in here decides anything.
//!
//! [`MemoryJournal`] keeps everything until the process ends; [`SqliteJournal`] keeps it in one file that people can
//! open with `sqlite3`. Both pass the same conformance suite.

mod bound;
mod codec;
mod json;
mod memory;
mod sqlite;

pub use memory::MemoryJournal;
pub use sqlite::{Access, Loss, SqliteJournal};
