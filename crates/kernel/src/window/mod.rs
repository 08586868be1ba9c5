//! The window: the part of its context that one model call of an agent sees. What is cut from it stays in the journal;
//! only the packet becomes shorter. The world keeps eight bytes of a message and no text, so that the rule that cuts is
//! pure; the texts follow in [`crate::context`].

mod category;
mod header;
mod kept;
mod room;
mod shares;
mod size;
mod summary;
mod trim;

pub use category::Category;
pub use header::{Header, Tie};
pub use kept::{Holding, News, Teller, Window};
pub use room::Room;
pub use shares::{Preset, Shares};
pub use size::{Because, Compact, WindowSpec};
pub(crate) use size::{check_size, effective, is_below};
pub(crate) use summary::came_to;
pub use summary::{Covers, Summary, Unsummed, covers};
pub use trim::{Blank, Bounds, Cut, LeftOut, Slice, Span, TooSmall, trim};
