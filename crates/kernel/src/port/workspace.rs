//! Where agents keep their files: one folder for all trees of a host, in it one per tree, in that one per agent. The
//! kernel opens none of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::context::Origin;
use crate::port::Pending;
use crate::primitives::{OutputPath, WrittenFile};

/// The folder of one agent, which no other agent shares. It need not exist yet: drivers create it when they need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFolder {
    root: Arc<Path>,
    origin: Arc<Origin>,
}

impl AgentFolder {
    /// The folder of an agent below the folder of all trees.
    #[must_use]
    pub const fn new(root: Arc<Path>, origin: Arc<Origin>) -> Self {
        Self { root, origin }
    }

    /// The folder of all trees. Below it no link is to be trusted, because agents write there.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The agent that owns it.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Its whole path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.root.join(self.origin.tree.to_string()).join(self.origin.agent().as_str())
    }
}

/// Fills the folders of agents when their tree is resumed, maybe on another machine.
pub trait FolderFiller: Send + Sync {
    /// Makes a file below the agent's `outputs/` what the tree's journal has. Nothing else uses the folder meanwhile.
    ///
    /// # Errors
    /// Why it cannot be written, for people.
    fn fill(&self, folder: AgentFolder, file: WrittenFile) -> Pending<Result<(), String>>;

    /// Removes a file below the agent's `outputs/` that the agent removed, if it is there.
    ///
    /// # Errors
    /// Why it cannot be removed, for people.
    fn remove(&self, folder: AgentFolder, file: OutputPath) -> Pending<Result<(), String>>;
}
