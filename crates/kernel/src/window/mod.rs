//! The window: the part of an agent's context that one model call sees. What is cut from it stays in the journal;
//! only the packet becomes shorter. The world stores twelve bytes per message and no text, so trimming is pure;
//! the texts are in [`crate::context`]. What both store the same way is here: the order of the messages (`list.rs`),
//! the inbox, and what is kept of ended children (`kept_children.rs`).

mod agent_window;
mod calibration;
mod inbox;
mod kept_children;
mod list;
mod room;
mod size;
mod summary;
mod trim;

pub use agent_window::{SharedContent, Window};
pub use inbox::Inbox;
pub(crate) use kept_children::KeptChildren;
pub(crate) use list::{ListKind, ListStore, Listed, MessageList, ShareTo};
pub use room::Room;
pub use size::SizeSource;
pub(crate) use size::{effective, is_below};
pub(crate) use summary::came_to;
pub use summary::covers;
pub use trim::{Bounds, Slice, TooSmall, trim};
