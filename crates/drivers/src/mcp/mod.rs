//! Servers of tools that speak the Model Context Protocol: programs of others, each in a box of its own, whose tools agents
//! call as their own (decision 0072). A server is hostile input: everything that it sends is bounded before the SDK reads it.

mod answer;
mod connection;
mod conversation;
mod lines;
mod offered;
mod permissions;
mod process;
mod server;
mod tool;
mod tool_servers;
mod transport;

pub use self::permissions::ServerPermissions;
pub use self::tool_servers::{StartedServer, ToolServers};
