//! What a journal is and how it is read back: the port that stores implement, batches, the hash chain, the catalog of
//! checkpoints, and retention. Nothing here assumes that a home belongs to one process.

mod batch;
mod blobs;
mod blocking;
mod catalog;
mod chain;
mod checkpoints;
mod claim;
mod cursor;
mod hash_text;
mod json;
mod layer;
mod page;
mod port;
mod recall;
mod retention;
mod seal;
mod sources;

pub use batch::{Batch, EncodedBatch};
pub use blobs::blobs_of;
pub use blocking::{Blocking, park_on};
pub use catalog::{
    CatalogKind, CatalogRow, EventPlace, Fact, catalog_of, catalog_rows, continuation, rebuild,
};
pub use chain::verify_chain;
pub use checkpoints::{CheckpointFacts, ListedCheckpoint, checkpoints, find};
pub use claim::{Claim, Epoch};
pub use cursor::{CursorError, HeadCursor};
pub use hash_text::NotAChainHash;
pub use json::Unwritable;
pub use layer::JournalLayer;
pub use page::{Pages, pages};
pub use port::{
    Append, Appended, Base, ChainHash, Entry, Head, HeadPage, Journal, JournalFault, Reading, Reservation,
    Shared, StoredEntry,
};
pub use recall::{damaged, mended, places, recall};
pub use retention::{Cleaned, clean, expired};
pub use seal::seal_of;
pub use sources::{newest_sources, source_bytes, started_sources};
