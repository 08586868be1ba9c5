//! File tools: an agent reads and writes in its own workspace, and nowhere else. A path is checked first and then
//! walked by handles from the agent's own folder, so neither a name, a link nor a race leads out of it.

mod advice;
mod delete;
mod diff;
mod edit;
mod handle;
mod ignored;
mod list;
mod matching;
mod path;
mod read;
mod search;
mod tool;
mod walk;
mod write;

pub use advice::Refused;
pub use path::{FilePath, Top};
pub use tool::{FileTool, Files};
