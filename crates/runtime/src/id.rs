//! Ids and names: of trees, agents, calls and events, of what a definition names, and when something happened.

pub use spinney_kernel::primitives::{
    AgentId, BlobRef, CallId, CheckpointName, Correlation, MessageKind, ModelName, RoleName, Seq, SessionId,
    SourceName, ThreadId, Time, ToolName, Topic, TreeId,
};
