//! Drivers: what acts outside on behalf of agents, and guards the folders that they work in. Today the workspaces, the
//! tools that read and write in them, the tool that runs commands in boxes, servers of tools, the guards of programs, what counts tokens, what models cost, the models of providers with their wire formats,
//! and the models and tools that answer from a script. Nothing in here decides, reads the time or knows how a tree is run
//! or stored.

#[cfg(all(feature = "processes", target_os = "linux"))]
pub mod commands;
#[cfg(feature = "http")]
pub mod fetch;
pub mod files;
pub mod folders;
#[cfg(feature = "http")]
pub mod http;
#[cfg(all(feature = "mcp", target_os = "linux"))]
pub mod mcp;
#[cfg(any(feature = "http", all(feature = "processes", target_os = "linux")))]
pub mod network;
mod off_worker;
#[cfg(all(feature = "mcp", target_os = "linux"))]
pub mod packages;
pub mod prices;
#[cfg(all(feature = "processes", target_os = "linux"))]
pub mod processes;
#[cfg(feature = "http")]
pub mod providers;
#[cfg(all(feature = "processes", target_os = "linux"))]
pub mod sandbox;
pub mod scripted;
pub mod tokens;
pub mod wire;
#[cfg(all(feature = "processes", target_os = "linux"))]
pub mod working_copies;
pub mod workspace;
