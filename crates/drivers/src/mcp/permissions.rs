//! What the user allows the servers of a tree file. A file alone starts none.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;

use spinney_kernel::definition::ToolServer;

/// What the user allows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ServerPermissions {
    /// Servers that may be started, each as [`ToolServer::allowance`] has it.
    pub servers: BTreeSet<String>,
    /// Variables that they may get, with their values; none for one that is not set.
    pub environment: BTreeMap<String, Option<OsString>>,
    /// Changes of what tools say of themselves, as the error names them.
    pub changed_tools: BTreeSet<String>,
}

impl fmt::Debug for ServerPermissions {
    /// Without the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.environment.keys().collect();
        f.debug_struct("ServerPermissions")
            .field("servers", &self.servers)
            .field("environment", &names)
            .field("changed_tools", &self.changed_tools)
            .finish()
    }
}

impl ServerPermissions {
    pub(super) fn allow(&self, server: &ToolServer) -> bool {
        self.servers.contains(&server.allowance())
    }

    /// The variables of a server that are set.
    pub(super) fn environment_of(&self, server: &ToolServer) -> Vec<(OsString, OsString)> {
        let set = |name: &String| Some((name.into(), self.environment.get(name)?.clone()?));
        server.env.iter().filter_map(set).collect()
    }
}
