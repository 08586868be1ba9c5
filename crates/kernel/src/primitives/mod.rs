//! The vocabulary that every other layer uses: ids, times, limits, texts and faults. Nothing here knows what a tree
//! is.

mod actor;
mod body;
mod category;
mod checkpoint_kind;
mod command_exit;
mod connection;
mod counted;
mod digest;
mod durability;
mod envelope;
mod fault;
mod hash;
mod host_rule;
mod hostile;
mod id;
pub mod limit;
pub mod nearest;
mod part;
pub mod retry;
mod reworded;
mod running;
mod seal_kind;
mod source_file;
mod stored_file;
mod thought;
mod time;
mod token_count;
mod trace_parent;

pub use actor::{Actor, Outsider, OutsiderKind};
pub(crate) use body::cut;
pub use body::{BlobRef, Body, BodyExtras};
pub use category::Category;
pub use checkpoint_kind::CheckpointKind;
pub use command_exit::{CommandExit, CommandLimit};
pub use connection::{Connection, ConnectionEnd, ConnectionRefusal, ConnectionTotals};
pub use counted::{Counted, grouped};
pub use digest::AnswerDigest;
pub(crate) use digest::{answer_digest, digest};
pub use durability::Durability;
pub use envelope::Envelope;
pub use fault::{Fault, FaultKind};
pub(crate) use hash::make_room;
pub use hash::{ByName, NameHasher};
pub use host_rule::{HostRule, RemoteHost, WEB_PORTS};
pub use hostile::is_hostile;
pub use id::*;
pub use part::{BadPart, Enclosure, IMAGE_TYPES, Part, PartKind, check_parts, enclose};
pub(crate) use reworded::{ALL_ALLOWED, Reworded, UNANSWERED};
pub use running::Running;
pub use seal_kind::SealKind;
pub use source_file::{BadSources, SourceFile, SourceFiles};
pub use stored_file::{StoredFile, WrittenFile};
pub use thought::Thought;
pub use time::{Millis, Time};
pub use token_count::TokenCount;
pub use trace_parent::TraceParent;

/// For `skip_serializing_if`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
pub(crate) const fn is_false(flag: &bool) -> bool {
    !*flag
}
