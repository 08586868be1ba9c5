//! The port of drivers whose tools are known only when they are asked, such as a server that has its own tools.

use std::path::Path;
use std::sync::Arc;

use crate::definition::Definition;
use crate::port::Pending;
use crate::port::tool::Tool;
use crate::primitives::{Fault, ToolName, TreeId};

pub trait ToolSource: Send + Sync {
    /// What people call it, for errors.
    fn name(&self) -> &str;

    /// The tools that it offers to a tree, which may differ from tree to tree. It is asked once each time the tree starts
    /// or is resumed, and has [`TOOL_DISCOVERY_MS_MAX`](crate::primitives::limit::TOOL_DISCOVERY_MS_MAX) to answer. What the
    /// tools are is recorded at the start: a resumed tree keeps those descriptions, and a replay does not ask.
    ///
    /// # Errors
    /// The tree does not run then, and the fault's message says why.
    fn tools(&self, discovery: ToolDiscovery) -> Pending<Result<Vec<OfferedTool>, Fault>>;
}

/// A tool of a source, and its name in the tree.
#[derive(Clone)]
#[non_exhaustive]
pub struct OfferedTool {
    pub name: ToolName,
    pub tool: Arc<dyn Tool>,
}

impl OfferedTool {
    #[must_use]
    pub const fn new(name: ToolName, tool: Arc<dyn Tool>) -> Self {
        Self { name, tool }
    }
}

/// The tree that a source is asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolDiscovery {
    pub tree: TreeId,
    /// As it was given at the start, or as the journal has it.
    pub definition: Arc<Definition>,
    /// The folder of all trees, if they have workspaces.
    pub workspaces: Option<Arc<Path>>,
}

impl ToolDiscovery {
    /// A tree without workspaces.
    #[must_use]
    pub const fn new(tree: TreeId, definition: Arc<Definition>) -> Self {
        Self { tree, definition, workspaces: None }
    }
}
