//! Ports: the traits of models and tools. Implementations live in other crates; the kernel calls none of them.

mod agent_model;
pub mod blobs;
mod connection_log;
pub mod model;
mod person;
pub mod program;
mod rights;
pub mod tool;
mod tool_source;
mod workspace;

use std::pin::Pin;

pub use crate::definition::FolderAccess;
pub use agent_model::{ModelHandle, ModelPort, ModelReply, NoReply};
pub use connection_log::{ConnectionLog, ConnectionSink, OpenConnection};
pub use person::{NoAnswer, PersonHandle, PersonPort};
pub use rights::{FolderRight, Rights};
pub use tool_source::{OfferedTool, ToolDiscovery, ToolSource};
pub use workspace::{AgentFolder, FolderFiller};

/// A driver's pending work. Dropping it stops the work.
pub type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;
