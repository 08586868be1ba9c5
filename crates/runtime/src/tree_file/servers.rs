//! `mcp`: servers of tools. Each is a program with what it may read, write and connect to; which agents have which of its
//! tools is in their own lists.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use spinney_kernel::definition::{Definition, FolderGrants, ServerAddress, TimeSpan, ToolServer};
use spinney_kernel::primitives::{ByName, RoleName, ServerName, ToolName, limit};

use super::TreeFile;
use super::definition::Reader;
use super::error::FileError;
use super::keys::ServerKeys;
use super::node::Step;

const TIMEOUT_MS: RangeInclusive<u64> = 1..=3_600_000;

impl Reader<'_> {
    /// All of them. Their folders are resolved later.
    pub(super) fn servers(&self) -> ByName<ServerName, ToolServer> {
        self.noted(self.few(&[Step::Key("mcp")], self.keys.mcp.len()));
        self.keys.mcp.iter().map(|(name, keys)| (name.clone(), self.server(name, keys))).collect()
    }

    fn server(&self, name: &ServerName, keys: &ServerKeys) -> ToolServer {
        let at = |key| [Step::Key("mcp"), Step::Key(name.as_str()), Step::Key(key)];
        let item =
            |key, index| [Step::Key("mcp"), Step::Key(name.as_str()), Step::Key(key), Step::Item(index)];
        self.noted(self.said(&at("command"), &keys.command, limit::TEXT_BYTES_MAX));
        for (index, arg) in keys.args.iter().enumerate() {
            self.noted(self.short(&item("args", index), arg, limit::TEXT_BYTES_MAX));
        }
        for (index, name) in keys.env.iter().enumerate() {
            if !is_variable(name) {
                let error = self.wrong(&item("env", index), "this is not the name of a variable");
                self.note(
                    error
                        .with_help("write only the name, such as GITHUB_TOKEN; its value is never in a file"),
                );
            }
        }
        let counts = [
            ("args", keys.args.len()),
            ("env", keys.env.len()),
            ("tools", keys.tools.as_ref().map_or(0, Vec::len)),
        ];
        for (key, count) in counts {
            self.noted(self.few(&at(key), count));
        }
        let timeout_ms = keys.timeout.map_or(limit::TOOL_TIMEOUT_MS, TimeSpan::ms);
        if !TIMEOUT_MS.contains(&timeout_ms) {
            let error = self.wrong(&at("timeout"), "`timeout` is out of bounds");
            self.note(error.with_help("write from 1ms to 1h"));
        }
        let command = [&keys.command].into_iter().chain(&keys.args).cloned().collect();
        ToolServer {
            address: ServerAddress::Command(command),
            env: keys.env.iter().cloned().collect(),
            network: self.network(&at("network"), &keys.network),
            folders: FolderGrants::default(),
            tools: keys.tools.as_ref().map(|tools| tools.iter().cloned().collect()),
            timeout_ms,
        }
    }
}

fn is_variable(name: &str) -> bool {
    (1..=limit::NAME_BYTES_MAX).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

impl TreeFile {
    /// Replaces words of the commands of servers, such as names of files by their whole paths.
    pub fn complete_servers(&mut self, change: &dyn Fn(&str) -> Option<String>) {
        for server in self.definition.servers.values_mut() {
            let ServerAddress::Command(words) = &mut server.address;
            for word in words {
                if let Some(changed) = change(word) {
                    *word = changed;
                }
            }
        }
    }

    /// The error for a server of which one key says what cannot be, at the place of that key.
    #[must_use]
    pub fn bad_server(&self, server: &ServerName, key: &str, reason: impl std::fmt::Display) -> FileError {
        let path = [Step::Key("mcp"), Step::Key(server.as_str()), Step::Key(key)];
        FileError::new(&self.file, self.root.place_of(&path), reason.to_string())
    }

    /// Whether a tool may be one of a server: which ones there are is known when the server runs.
    #[must_use]
    pub fn may_be_served(&self, tool: &ToolName) -> bool {
        let Some((name, server)) = self.definition.server_of(tool) else { return false };
        let is_it = |own: &String| name.tool(own).as_ref() == Some(tool);
        server.tools.as_ref().is_none_or(|tools| tools.iter().any(is_it))
    }

    /// Roles with tools of a server that has more than the role: rights only shrink.
    pub(super) fn servers_beyond(&self, definition: &Definition) -> Vec<FileError> {
        let error = |role: &RoleName, server: &ServerName, beyond: String| {
            let message =
                format!("`{role}` has tools of server `{server}`, which may {beyond}, and `{role}` may not");
            let path = [Step::Key("agents"), Step::Key(role.as_str()), Step::Key("tools")];
            FileError::new(&self.file, self.root.place_of_key(&path), message)
        };
        let all = definition.servers_beyond_roles().into_iter().map(|found| {
            let help = match found.beyond.network.is_denied() {
                false => "list the same hosts in the agent's `network`, or take them from the server",
                true => "list the same folders at the top of the file or of the agent, or take them from the server",
            };
            error(&found.role, &found.server, found.beyond.to_string()).with_help(help)
        });
        all.collect()
    }

    /// Servers that are never started.
    pub(super) fn unused_servers(&self, definition: &Definition) -> Vec<FileError> {
        let used: BTreeSet<&ServerName> = definition.used_servers().map(|(name, _)| name).collect();
        let unused = definition.servers.keys().filter(|name| !used.contains(name));
        let error = |name: &ServerName| {
            let path = [Step::Key("mcp"), Step::Key(name.as_str())];
            let message = format!("no agent has a tool of server `{name}`, so it is not started");
            let error = FileError::new(&self.file, self.root.place_of_key(&path), message);
            error.with_help(format!("list `{name}__TOOL` in the `tools` of an agent"))
        };
        unused.map(error).collect()
    }
}
