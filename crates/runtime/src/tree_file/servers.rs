//! `mcp`: servers of tools. Each is a program with what it may read, write and connect to, or a URL; which agents have which
//! of its tools is in their own lists.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use spinney_kernel::definition::{
    Definition, FolderGrants, HttpAddress, Network, ServerAddress, ServerAuth, TimeSpan, ToolServer,
};
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
        let (address, network) = match (&keys.command, &keys.url) {
            (None, Some(url)) => self.elsewhere(name, keys, url),
            (command, url) => {
                if url.is_some() || command.is_none() {
                    let message = format!("server `{name}` needs either `command` or `url`");
                    self.note(self.wrong_key(&at("")[..2], message));
                }
                (self.command(name, keys), self.network(&at("network"), &keys.network))
            }
        };
        ToolServer {
            address,
            env: keys.env.iter().cloned().collect(),
            network,
            folders: FolderGrants::default(),
            tools: keys.tools.as_ref().map(|tools| tools.iter().cloned().collect()),
            timeout_ms,
            per: keys.per.unwrap_or_default(),
            sampling: keys.sampling,
        }
    }

    fn command(&self, name: &ServerName, keys: &ServerKeys) -> ServerAddress {
        let at = |key| [Step::Key("mcp"), Step::Key(name.as_str()), Step::Key(key)];
        let program = keys.command.clone().unwrap_or_default();
        if keys.command.is_some() {
            self.noted(self.said(&at("command"), &program, limit::TEXT_BYTES_MAX));
        }
        for (index, arg) in keys.args.iter().enumerate() {
            let item = [Step::Key("mcp"), Step::Key(name.as_str()), Step::Key("args"), Step::Item(index)];
            self.noted(self.short(&item, arg, limit::TEXT_BYTES_MAX));
        }
        if keys.auth.is_some() {
            let error = self.wrong_key(&at("auth"), "`auth` is for servers with `url`");
            self.note(error.with_help("write the name of the variable in `env`"));
        }
        ServerAddress::Command([program].into_iter().chain(keys.args.iter().cloned()).collect())
    }

    /// A server that does not run here has nothing of this machine, and connects to nothing for us but its own host.
    fn elsewhere(&self, name: &ServerName, keys: &ServerKeys, url: &str) -> (ServerAddress, Network) {
        let at = |key| [Step::Key("mcp"), Step::Key(name.as_str()), Step::Key(key)];
        let of_programs = [
            ("args", keys.args.is_empty()),
            ("env", keys.env.is_empty()),
            ("network", keys.network.is_empty()),
            ("read", keys.read.is_empty()),
            ("write", keys.write.is_empty()),
        ];
        for (key, is_empty) in of_programs {
            if !is_empty {
                let message = format!("`{key}` is for servers with `command`");
                self.note(self.wrong_key(&at(key), message));
            }
        }
        self.noted(self.said(&at("url"), url, limit::TEXT_BYTES_MAX));
        let auth = keys.auth.as_ref().map(|auth| {
            let key = [Step::Key("mcp"), Step::Key(name.as_str()), Step::Key("auth"), Step::Key("key_env")];
            self.noted(self.names_a_variable(&key, &auth.key_env));
            if let Some(header) = auth.header.as_ref().filter(|header| !is_header(header)) {
                let header_at =
                    [Step::Key("mcp"), Step::Key(name.as_str()), Step::Key("auth"), Step::Key("header")];
                let message = format!("`{header}` is not a header that a key can be sent in");
                self.note(self.wrong(&header_at, message).with_help("write a name such as X-API-Key"));
            }
            ServerAuth { key_env: auth.key_env.clone(), header: auth.header.clone() }
        });
        let address = HttpAddress { url: url.to_owned(), auth };
        let network = match address.check() {
            Ok(host) => Network::hosts([host]),
            Err(why) => {
                self.note(self.wrong(&at("url"), why));
                Network::Denied
            }
        };
        (ServerAddress::Http(address), network)
    }
}

/// Whether a header can have a key: not one that the connection or the protocol needs.
fn is_header(name: &str) -> bool {
    let taken = [
        "host",
        "connection",
        "content-length",
        "content-type",
        "accept",
        "transfer-encoding",
        "upgrade",
        "te",
    ];
    let lower = name.to_ascii_lowercase();
    (1..=limit::NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        && !taken.contains(&lower.as_str())
        && !lower.starts_with("mcp-")
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
            let ServerAddress::Command(words) = &mut server.address else { continue };
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
