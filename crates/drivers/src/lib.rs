//! Drivers: what acts outside on behalf of agents, and guards the folders that they work in. Today the workspaces, and
//! what counts tokens; models and tools come here. Nothing in here decides, reads the time or knows how a tree is run
//! or stored.

pub mod tokens;
pub mod workspace;
