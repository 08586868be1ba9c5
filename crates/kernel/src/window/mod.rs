//! The window: the part of its context that one model call of an agent sees. What is cut from it stays in the journal;
//! only the packet becomes shorter. The world keeps eight bytes of a message and no text, so that the rule that cuts is
//! pure; the texts follow in [`crate::context`].

mod kept;
mod room;
mod size;
mod summary;
mod trim;

pub use kept::{News, Window};
pub use room::Room;
pub use size::Because;
pub(crate) use size::{effective, is_below};
pub(crate) use summary::came_to;
pub use summary::covers;
pub use trim::{Bounds, Slice, TooSmall, trim};
