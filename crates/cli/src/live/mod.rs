//! The live view of a tree: what happens now, drawn over itself on a terminal. `view.rs` makes lines for any size and
//! moment, and `screen.rs` decides when to draw.

mod activity;
mod listing;
mod screen;
mod steps;

mod summary;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use listing::{dot_lines, first_doing, overview_bar, tree_lines};
pub(crate) use screen::{LiveScreen, view_width};
pub(crate) use summary::write_summary;
pub(crate) use view::shows_command;
