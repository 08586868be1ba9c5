//! Servers of tools that a tree may start or connect to, and what each of them has. What an agent may call of one is in
//! its `tools`, as `server__tool`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::refusal::{Refusal, check_said, check_text};
use super::{Allow, Definition, FolderGrants, Network, Role, bounded};
use crate::primitives::{RoleName, ServerName, ToolName, limit};

/// A server of tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolServer {
    pub address: ServerAddress,
    /// The names of variables that it gets. Their values are in no journal.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub env: BTreeSet<String>,
    /// Hosts that it may connect to.
    #[serde(default, skip_serializing_if = "Network::is_denied")]
    pub network: Network,
    /// Folders of the user that it may use.
    #[serde(default, skip_serializing_if = "FolderGrants::is_empty")]
    pub folders: FolderGrants,
    /// Its tools that agents may have, by its own names; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeSet<String>>,
    /// How long one call may take.
    pub timeout_ms: u64,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerAddress {
    /// A program of this machine, which speaks through its standard input and output.
    Command(Vec<String>),
}

impl ToolServer {
    /// What is started with which variables, as one text: what a person allows.
    #[must_use]
    pub fn allowance(&self) -> String {
        let ServerAddress::Command(words) = &self.address;
        let variables = self.env.iter().map(|name| format!("${name}"));
        variables.chain(words.iter().map(|word| quoted(word))).collect::<Vec<_>>().join(" ")
    }

    /// The names of the variables in such a text.
    pub fn variables_of(allowance: &str) -> impl Iterator<Item = &str> {
        allowance.split(' ').map_while(|word| word.strip_prefix('$'))
    }

    /// What it has and an agent with these rights does not.
    #[must_use]
    pub fn beyond(&self, network: &Network, folders: &FolderGrants) -> ServerBeyond {
        ServerBeyond { network: self.network.beyond(network), folders: self.folders.beyond(folders) }
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        let ServerAddress::Command(words) = &self.address;
        bounded("words of a server's command", words.len())?;
        check_said("command of a server", words.first().map_or("", String::as_str), limit::TEXT_BYTES_MAX)?;
        words.iter().try_for_each(|word| check_text("word of a command", word, limit::TEXT_BYTES_MAX))?;
        bounded("variables of a server", self.env.len())?;
        self.env.iter().try_for_each(|name| check_text("name of a variable", name, limit::NAME_BYTES_MAX))?;
        bounded("tools of a server", self.tools.as_ref().map_or(0, BTreeSet::len))?;
        self.network.check()?;
        self.folders.check()?;
        if self.timeout_ms == 0 || self.timeout_ms > limit::TIMEOUT_MS_MAX {
            return Err(Refusal::BadTimeout { ms: self.timeout_ms, ms_max: limit::TIMEOUT_MS_MAX });
        }
        Ok(())
    }
}

/// A word of a command, so that no two commands have the same text.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '=' | '+' | ',' | '%')
    };
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("{word:?}") }
}

/// What a server has and an agent that would use it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerBeyond {
    pub network: Network,
    pub folders: FolderGrants,
}

impl ServerBeyond {
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.network.is_denied() && self.folders.is_empty()
    }
}

impl std::fmt::Display for ServerBeyond {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.network.is_denied(), self.folders.is_empty()) {
            (false, true) => write!(f, "connect to {}", self.network),
            (false, false) => write!(f, "connect to {}, {}", self.network, self.folders),
            (true, _) => self.folders.fmt(f),
        }
    }
}

/// A role that has tools of a server which has more than the role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerBeyondRole {
    pub role: RoleName,
    pub server: ServerName,
    pub beyond: ServerBeyond,
}

impl Definition {
    /// The server that a tool belongs to, by its name.
    #[must_use]
    pub fn server_of(&self, tool: &ToolName) -> Option<(&ServerName, &ToolServer)> {
        let (server, _) = ServerName::split(tool)?;
        self.servers.get_key_value(server)
    }

    /// The servers of which a role has tools.
    pub fn servers_of<'a>(
        &'a self,
        role: &'a Role,
    ) -> impl Iterator<Item = (&'a ServerName, &'a ToolServer)> {
        let named: BTreeSet<&str> = match &role.caps.tools {
            Allow::All => self.servers.keys().map(ServerName::as_str).collect(),
            Allow::Only(tools) => tools.iter().filter_map(|tool| Some(ServerName::split(tool)?.0)).collect(),
        };
        self.servers.iter().filter(move |(name, _)| named.contains(name.as_str()))
    }

    /// The servers of which some role has tools.
    pub fn used_servers(&self) -> impl Iterator<Item = (&ServerName, &ToolServer)> {
        self.servers.iter().filter(|(name, _)| {
            self.roles.values().any(|role| self.servers_of(role).any(|(of_role, _)| of_role == *name))
        })
    }

    /// Roles with tools of a server that has more than any of their agents can have. A role that lists no folders may have
    /// those of any agent above it.
    #[must_use]
    pub fn servers_beyond_roles(&self) -> Vec<ServerBeyondRole> {
        let all = self.all_folders();
        let of_role = |(role, settings): (&RoleName, &Role)| {
            let folders = settings.caps.folders.as_ref().unwrap_or(&all).clone();
            let network = settings.caps.network.clone();
            let servers = self
                .servers_of(settings)
                .map(|(name, server)| (name.clone(), server.beyond(&network, &folders)));
            let servers: Vec<_> = servers.filter(|(_, beyond)| !beyond.is_nothing()).collect();
            let role = role.clone();
            servers.into_iter().map(move |(server, beyond)| ServerBeyondRole {
                role: role.clone(),
                server,
                beyond,
            })
        };
        self.roles.iter().flat_map(of_role).collect()
    }
}
