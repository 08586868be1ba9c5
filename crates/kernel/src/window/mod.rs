//! The window: the part of its context that one model call of an agent sees. What is cut from it stays in the journal;
//! only the packet becomes shorter. The world keeps eight bytes of a message and no text, so that the rule that cuts is
//! pure; the texts follow in [`crate::context`]. What both keep in the same way is here: the order of the messages
//! (`list.rs`), the inbox, and what is kept of children that ended (`kept_children.rs`).

mod inbox;
mod kept;
mod kept_children;
mod list;
mod room;
mod size;
mod summary;
mod trim;

pub use inbox::Inbox;
pub use kept::{News, Window};
pub(crate) use kept_children::KeptChildren;
pub(crate) use list::{ListKind, ListStore, Listed, MessageList, ShareTo};
pub use room::Room;
pub use size::Because;
pub(crate) use size::{effective, is_below};
pub(crate) use summary::came_to;
pub use summary::covers;
pub use trim::{Bounds, Slice, TooSmall, trim};
