//! The servers of a tree file without a tree, for people who want to see their tools. They run in a folder that is removed
//! with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney_drivers::mcp::StartedServer;
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::port::ToolDiscovery;
use spinney_kernel::primitives::TreeId;

use crate::prepared::PreparedTree;
use crate::system::private_files;
use crate::system::remove_folder::remove_folder;

/// Servers that run until this is dropped.
pub struct ServerTrial {
    /// In the order of the file.
    pub servers: Vec<StartedServer>,
    folder: PathBuf,
}

impl ServerTrial {
    /// Starts the servers that a file [kept](PreparedTree::keep_servers), as far as the user allows it, in a new folder
    /// below this one.
    ///
    /// # Errors
    /// The first one that cannot be used, and why.
    pub async fn start(prepared: &PreparedTree, tree: TreeId, temporary: &Path) -> Result<Self, String> {
        let folder = temporary.join(format!("spinney-{tree}"));
        let unmade = |error| format!("cannot make {}: {error}", folder.display());
        private_files::new_folder(&folder).map_err(unmade)?;
        let mut trial = Self { servers: Vec::new(), folder };
        prepared.source.boxed.prepare(&trial.folder, prepared.permissions().clone());
        let mut discovery = ToolDiscovery::new(tree, Arc::new(prepared.definition.clone()));
        discovery.workspaces = Some(Workspaces::root(&trial.folder).into());
        trial.servers = prepared.source.boxed.servers.start(&discovery).await?;
        Ok(trial)
    }
}

impl Drop for ServerTrial {
    fn drop(&mut self) {
        self.servers.clear();
        // What is left of it is temporary.
        let _ = remove_folder(&self.folder);
    }
}
