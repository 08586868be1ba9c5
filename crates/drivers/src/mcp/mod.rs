//! Servers of tools that speak the Model Context Protocol: programs of others, each in a box of its own, or reached over
//! HTTP, whose tools agents call as their own (decisions 0072 and 0076). A server is hostile input: everything that it
//! sends is bounded before the SDK reads it.

mod agent_servers;
mod answer;
mod connection;
mod conversation;
mod elicitation;
mod extra;
mod http_client;
mod http_session;
mod http_transport;
mod incoming;
mod known_tools;
mod lines;
mod login;
mod login_http;
mod login_metadata;
mod offered;
mod open_calls;
mod peer_answers;
mod permissions;
mod pipe_transport;
mod process;
mod sampling;
mod server;
mod server_start;
mod tool;
mod tool_servers;

pub use self::known_tools::{KnownTool, KnownTools};
pub use self::login::{LOGIN_PATH, LoginAnswer, LoginRequest, LoginTokens, ServerLogins, login_answer};
pub use self::permissions::ServerPermissions;
pub use self::tool_servers::{StartedServer, ToolServers};
