//! The live view of a tree: what happens now, drawn over itself on a terminal. `state.rs` folds events and streamed
//! text, `view.rs` makes lines of that for any size and moment, `region.rs` alone knows the terminal, and `screen.rs`
//! decides when to draw.

mod doing;
mod folding;
mod listing;
mod region;
mod screen;
mod state;
mod summary;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use listing::{dot_lines, json_lines, tree_lines, tree_row};
pub(crate) use region::{above, draw};
pub(crate) use screen::{LiveScreen, view_width};
pub(crate) use state::LiveTree;
pub(crate) use summary::write_summary;
pub(crate) use view::shows_command;
