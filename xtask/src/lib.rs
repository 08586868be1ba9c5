//! The project's own chores. The binary beside this library only reads arguments and prints.
//!
//! This crate knows the shape of the workspace and depends on none of its packages.

pub mod dependencies;
pub mod picture;
pub mod prices;
pub mod public_api;
pub mod tidy;
pub mod workspace;
