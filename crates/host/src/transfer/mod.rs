//! Moves trees between homes and machines in one file, or copies them. See `docs/export.md`.
//!
//! An unfinished tree moves: before the file is written, the tree is sealed here, so it spends no budget twice. The batch
//! that seals it is the last one in the file, and importing removes the seal again. A tree that has ended is copied as it is;
//! a copy of an unfinished one is sealed where it is imported, and can be read and branched there.

mod export;
mod import;
mod needs;
mod new_file;
mod trees_file;

pub use export::{ExportError, ExportKind, ExportedTree, SealedExport, export, take_back};
pub use import::{Arrival, ImportError, ImportedTree, KeptCopy, import};
pub use needs::TreeNeed;
pub use trees_file::UnreadTreesFile;
