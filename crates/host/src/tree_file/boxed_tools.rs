//! What starts the processes of a tree, each in a box: the commands of its agents, and its servers of tools.

use std::path::Path;

use spinney_drivers::commands::{BoxPermissions, Commands};
use spinney_drivers::mcp::{ServerPermissions, ToolServers};
use spinney_drivers::sandbox::can_guard_boxes;

use crate::inside::command_mark;

/// What starts the processes of one tree. Nothing starts before it is prepared.
pub struct BoxedTools {
    /// If its agents may run commands.
    pub commands: Option<Commands>,
    /// Its servers, if it has some.
    pub servers: ToolServers,
}

/// What the processes of a tree may have.
#[derive(Clone, Debug, Default)]
pub struct BoxedPermissions {
    /// Commands of agents.
    pub commands: BoxPermissions,
    /// Servers of tools.
    pub servers: ServerPermissions,
}

impl BoxedTools {
    /// Lets the processes of a tree in this home start, as far as the user allows it.
    pub fn prepare(&self, home: &Path, permissions: BoxedPermissions) {
        // A program that is started again without knowing why would do what it does.
        if !can_guard_boxes() {
            return;
        }
        // Without a mark nothing would know what the processes belong to, so that none is started.
        let Ok(mark) = command_mark(home) else { return };
        if let Some(commands) = &self.commands {
            commands.prepare(permissions.commands, mark.clone());
        }
        self.servers.prepare(permissions.servers, mark);
    }
}
