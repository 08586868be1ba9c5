//! File tools: an agent reads and writes in its own workspace and in folders of the user that it was granted, and nowhere
//! else. A path is checked first and then walked by handles from the folder that it is in, so neither a name, a link nor
//! a race leads out of it.

mod advice;
mod delete;
mod diff;
mod edit;
mod granted;
mod handle;
mod ignored;
mod list;
mod matching;
mod path;
mod place;
mod read;
mod search;
mod tool;
mod walk;
mod write;

pub use advice::Refused;
pub use path::{FilePath, Top};
pub use tool::{FileTool, Files};
