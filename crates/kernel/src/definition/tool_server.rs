//! Servers of tools that a tree may start or connect to, and what each of them has. What an agent may call of one is in
//! its `tools`, as `server__tool`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::refusal::{Refusal, check_said, check_text};
use super::wanted_hosts::host_of_url;
use super::{Allow, Definition, FolderGrants, Network, Role, bounded};
use crate::primitives::{HostRule, RoleName, ServerName, ToolName, limit};

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
    /// Whom one of its processes, or one session with it, is for.
    #[serde(default, skip_serializing_if = "ServerScope::is_tree")]
    pub per: ServerScope,
    /// Whether it may ask for model calls, in the budget of the agent that calls it.
    #[serde(default, skip_serializing_if = "crate::primitives::is_false")]
    pub sampling: bool,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerAddress {
    /// A program of this machine, which speaks through its standard input and output.
    Command(Vec<String>),
    /// A server that runs elsewhere, and is reached over HTTP.
    Http(HttpAddress),
}

/// Where a server is reached over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpAddress {
    pub url: String,
    /// What it wants to be sent with each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<ServerAuth>,
}

/// The key of a server. Its value is in no journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerAuth {
    /// The name of the variable that has it.
    pub key_env: String,
    /// The header that it is sent in, as it is; if absent, it is the token of `Authorization: Bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

/// Whom a process of a server is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerScope {
    /// All agents of the tree.
    #[default]
    Tree,
    /// One agent: what the server asks meanwhile, it asks for that agent.
    Agent,
}

impl ServerScope {
    #[must_use]
    pub const fn is_tree(&self) -> bool {
        matches!(self, Self::Tree)
    }
}

impl HttpAddress {
    /// The host and port that it names, if it is in the usual form.
    #[must_use]
    pub fn host(&self) -> Option<HostRule> {
        host_of_url(&self.url).map(|(host, port)| HostRule::one(host, port))
    }

    /// Why a server cannot be reached in this way, in words.
    ///
    /// # Errors
    /// If it is not a URL, or if what is sent could be read on the way.
    pub fn check(&self) -> Result<HostRule, &'static str> {
        let rule = self.host().ok_or("this is not a URL: write https://HOST/PATH, without a password")?;
        if self.url.contains('#') || self.url.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("a URL of a server has no fragment, and no spaces");
        }
        let is_this_machine = rule.address().is_some_and(|address| address.is_loopback())
            || rule.host().is_some_and(crate::primitives::RemoteHost::is_localhost);
        let is_plain = self.url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
        if is_plain && !is_this_machine {
            return Err("this is plain http to another machine: write https, or tunnel it to 127.0.0.1");
        }
        Ok(rule)
    }
}

impl ToolServer {
    /// What is started with which variables, as one text: what a person allows.
    #[must_use]
    pub fn allowance(&self) -> String {
        let variables = self.variables().map(|name| format!("${name}"));
        let words = match &self.address {
            ServerAddress::Command(words) => words.iter().map(|word| quoted(word)).collect(),
            ServerAddress::Http(address) => vec![quoted(&address.url)],
        };
        variables.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Whether such a text is of a server that is not started here.
    #[must_use]
    pub fn is_remote(allowance: &str) -> bool {
        let first = allowance.split(' ').find(|word| !word.starts_with('$')).unwrap_or_default();
        is_url(first.trim_start_matches('"'))
    }

    /// The names of the variables that it gets.
    pub fn variables(&self) -> impl Iterator<Item = &String> {
        let auth = match &self.address {
            ServerAddress::Http(HttpAddress { auth: Some(auth), .. }) => Some(&auth.key_env),
            ServerAddress::Http(_) | ServerAddress::Command(_) => None,
        };
        self.env.iter().chain(auth)
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
        match &self.address {
            ServerAddress::Command(words) => {
                bounded("words of a server's command", words.len())?;
                let program = words.first().map_or("", String::as_str);
                // It would look like the address of a server elsewhere.
                let program = if is_url(program) { "" } else { program };
                check_said("command of a server", program, limit::TEXT_BYTES_MAX)?;
                words
                    .iter()
                    .try_for_each(|word| check_text("word of a command", word, limit::TEXT_BYTES_MAX))?;
            }
            ServerAddress::Http(address) => {
                let url = if address.check().is_ok() { address.url.as_str() } else { "" };
                check_said("URL of a server", url, limit::TEXT_BYTES_MAX)?;
                if let Some(auth) = &address.auth {
                    check_said("variable of a server's key", &auth.key_env, limit::NAME_BYTES_MAX)?;
                    let header = auth.header.as_deref().unwrap_or("authorization");
                    check_said("header of a server's key", header, limit::NAME_BYTES_MAX)?;
                }
            }
        }
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

fn is_url(word: &str) -> bool {
    let begins = |scheme: &str| word.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    begins("http://") || begins("https://")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn http(url: &str) -> HttpAddress {
        HttpAddress { url: url.to_owned(), auth: None }
    }

    fn server(address: ServerAddress) -> ToolServer {
        ToolServer {
            address,
            env: BTreeSet::new(),
            network: Network::Denied,
            folders: FolderGrants::default(),
            tools: None,
            timeout_ms: 1_000,
            sampling: false,
            per: ServerScope::Tree,
        }
    }

    /// P17: a server elsewhere is one host with one port, and nothing that two readers read differently.
    #[test]
    fn p17_a_url_of_a_server_names_one_host() {
        for (url, host) in [
            ("https://a.org/mcp", Some("a.org:443")),
            ("https://a.org:8443/mcp?x=y", Some("a.org:8443")),
            ("http://127.0.0.1:3001/mcp", Some("127.0.0.1:3001")),
            ("http://localhost:3001/mcp", Some("localhost:3001")),
            ("http://[::1]:3001/mcp", Some("[::1]:3001")),
            ("http://a.org/mcp", None),
            ("http://10.0.0.5/mcp", None),
            ("https://user:password@a.org/mcp", None),
            ("https://a.org/mcp#part", None),
            ("https://a.org/a b", None),
            ("ftp://a.org/", None),
            ("a.org/mcp", None),
        ] {
            assert_eq!(http(url).check().ok().map(|rule| rule.to_string()).as_deref(), host, "{url}");
            assert_eq!(server(ServerAddress::Http(http(url))).check().is_ok(), host.is_some(), "{url}");
        }
    }

    #[test]
    fn what_is_allowed_of_a_server_elsewhere_is_its_url_with_the_name_of_its_key() {
        let auth = Some(ServerAuth { key_env: "NOTES_TOKEN".to_owned(), header: None });
        let address = HttpAddress { auth, ..http("https://a.org/mcp?x=y") };
        let allowance = server(ServerAddress::Http(address)).allowance();
        assert_eq!(allowance, r#"$NOTES_TOKEN "https://a.org/mcp?x=y""#);
        assert!(ToolServer::is_remote(&allowance));
        assert_eq!(ToolServer::variables_of(&allowance).collect::<Vec<_>>(), ["NOTES_TOKEN"]);
        let command = |words: &[&str]| {
            server(ServerAddress::Command(words.iter().map(|word| (*word).to_owned()).collect()))
        };
        assert!(!ToolServer::is_remote(&command(&["curl", "https://a.org"]).allowance()));
        assert!(command(&["https://a.org/mcp"]).check().is_err());
    }
}
