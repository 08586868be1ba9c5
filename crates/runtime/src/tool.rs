//! Everything for your own tool: its trait, what comes with each attempt, what an attempt ends in, and sources of tools.

pub use spinney_kernel::budget::Used;
pub use spinney_kernel::context::Origin;
pub use spinney_kernel::definition::{BoxSpec, BoxWalls, Network, OnLost, OutputLimits, ToolSpec};
pub use spinney_kernel::port::model::AttemptError;
pub use spinney_kernel::port::tool::{OutputWatchers, Tool, ToolAnswer, ToolAttempt};
pub use spinney_kernel::port::{
    AgentFolder, FolderAccess, FolderFiller, FolderRight, OfferedTool, Pending, Rights, ToolDiscovery,
    ToolSource,
};
pub use spinney_kernel::primitives::{
    BadPart, Durability, Enclosure, Fault, FaultKind, OutputPath, Part, PartKind, WrittenFile,
};
