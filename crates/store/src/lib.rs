//! Implementations of the journal port. Nothing here decides anything.
//!
//! [`MemoryJournal`] keeps everything until the process ends; [`SqliteJournal`] stores it in one file that people can
//! open with `sqlite3`. Both pass the same conformance suite.

mod bound;
mod codec;
mod cursor;
pub mod layout;
mod memory;
mod sqlite;
pub mod system;
mod waiting;

pub use memory::MemoryJournal;
pub use sqlite::{Access, HomeRefusal, Loss, OpenHomeError, SqliteJournal};
