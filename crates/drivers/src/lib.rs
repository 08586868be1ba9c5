//! Drivers: what acts outside on behalf of agents, and guards the folders that they work in. Today the workspaces, the
//! tools that read and write in them, what counts tokens, and the models and tools that answer from a script; other models
//! come here. Nothing in here decides, reads the time or knows how a tree is run or stored.

pub mod files;
pub mod scripted;
pub mod tokens;
pub mod workspace;
