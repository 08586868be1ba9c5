//! The servers of trees: as a source of tools, they start those of a tree that its roles use, all at once, and give it the
//! tools that its roles name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use spinney_kernel::definition::{Allow, Definition, ServerAddress, ToolServer, ToolSpec};
use spinney_kernel::port::tool::Tool;
use spinney_kernel::port::{OfferedTool, Pending, ToolDiscovery, ToolSource};
use spinney_kernel::primitives::{Fault, FaultKind, ServerName, ToolName, nearest};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use super::agent_servers::AgentServers;
use super::known_tools::{self, KnownTools};
use super::login::ServerLogins;
use super::offered::Offered;
use super::permissions::ServerPermissions;
use super::server::Server;
use super::server_start::{HttpStart, ProcessStart, ServerPlace, ServerStart};
use super::tool::ServerTool;
use crate::commands::refusal_in_words;
use crate::folders::HiddenFolders;
use crate::network::{Outbound, SystemOutbound};
use crate::off_worker::off_worker;
use crate::packages::PackageCache;
use crate::sandbox::{BoxLauncher, BoxTierChoice};

/// Starts the servers of trees. Clones are the same driver.
#[derive(Clone)]
pub struct ToolServers {
    shared: Arc<Shared>,
    hidden: HiddenFolders,
    outbound: Arc<dyn Outbound>,
    known: Option<Arc<dyn KnownTools>>,
    packages: Option<PackageCache>,
    logins: Option<Arc<dyn ServerLogins>>,
}

struct Shared {
    helper: PathBuf,
    tier: BoxTierChoice,
    launcher: OnceCell<Arc<BoxLauncher>>,
    prepared: Mutex<Option<Prepared>>,
    ask: Mutex<Option<Arc<AskAboutChanges>>>,
}

/// Shows a person what has changed, and returns whether it is allowed.
type AskAboutChanges = dyn Fn(&str) -> bool + Send + Sync;

#[derive(Clone)]
struct Prepared {
    permissions: ServerPermissions,
    mark: Vec<OsString>,
}

/// A server of a tree that runs, for people.
#[derive(Clone)]
pub struct StartedServer {
    pub name: ServerName,
    /// Its tools, by their names in a tree.
    pub tools: BTreeMap<ToolName, ToolSpec>,
    /// Tools that agents cannot have, and why.
    pub refused: BTreeMap<String, String>,
    server: Arc<AgentServers>,
}

impl StartedServer {
    /// One of its tools. The server runs for as long as this is there.
    #[must_use]
    pub fn tool(&self, name: &ToolName) -> Option<Arc<dyn Tool>> {
        self.tools.contains_key(name).then(|| {
            let (server, server_name) = (Arc::clone(&self.server), self.name.clone());
            Arc::new(ServerTool { server, server_name, tool: name.clone() }) as Arc<dyn Tool>
        })
    }
}

impl fmt::Debug for ToolServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolServers")
    }
}

impl ToolServers {
    /// `helper` is as for [`BoxLauncher::new`].
    #[must_use]
    pub fn new(helper: PathBuf) -> Self {
        Self::with_tier(helper, BoxTierChoice::Best)
    }

    /// The same with boxes of one tier.
    #[must_use]
    pub fn with_tier(helper: PathBuf, tier: BoxTierChoice) -> Self {
        let shared = Shared {
            helper,
            tier,
            launcher: OnceCell::new(),
            prepared: Mutex::default(),
            ask: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
            hidden: HiddenFolders::default(),
            outbound: Arc::new(SystemOutbound::default()),
            known: None,
            packages: None,
            logins: None,
        }
    }

    /// Keeps these folders from every server, whatever is granted around them.
    #[must_use]
    pub fn hiding(mut self, hidden: HiddenFolders) -> Self {
        self.hidden = hidden;
        self
    }

    /// Remembers here what tools say of themselves, and refuses to start a tree with one that says something else.
    #[must_use]
    pub fn knowing(mut self, known: Arc<dyn KnownTools>) -> Self {
        self.known = Some(known);
        self
    }

    /// Starts servers that are packages from this cache.
    #[must_use]
    pub fn with_packages(mut self, packages: PackageCache) -> Self {
        self.packages = Some(packages);
        self
    }

    /// Sends the tokens of these logins to servers elsewhere that no key is named for.
    #[must_use]
    pub fn with_logins(mut self, logins: Arc<dyn ServerLogins>) -> Self {
        self.logins = Some(logins);
        self
    }

    /// Asks a person with this when tools say something else than before. It may block. Without it nobody is asked.
    pub fn ask_about_changes(&self, ask: impl Fn(&str) -> bool + Send + Sync + 'static) {
        let ask: Arc<AskAboutChanges> = Arc::new(ask);
        *self.shared.ask.lock().unwrap_or_else(PoisonError::into_inner) = Some(ask);
    }

    /// Connects through this instead of through the system.
    #[must_use]
    pub fn connecting(mut self, outbound: Arc<dyn Outbound>) -> Self {
        self.outbound = outbound;
        self
    }

    /// Sets what the user allows, and what each guard has on its command line. Nothing starts before that.
    pub fn prepare(&self, permissions: ServerPermissions, mark: Vec<OsString>) {
        let prepared = Some(Prepared { permissions, mark });
        *self.shared.prepared.lock().unwrap_or_else(PoisonError::into_inner) = prepared;
    }

    fn prepared(&self) -> Result<Prepared, String> {
        let prepared = self.shared.prepared.lock().unwrap_or_else(PoisonError::into_inner).clone();
        prepared.ok_or_else(|| "this process is not prepared for servers: the `main` of its program has to call `guard_a_box` first, and its home has to be readable".to_owned())
    }

    async fn launcher(&self, prepared: &Prepared) -> Result<Arc<BoxLauncher>, String> {
        let shared = &self.shared;
        let start =
            async || BoxLauncher::with_mark(shared.helper.clone(), prepared.mark.clone()).await.map(Arc::new);
        shared.launcher.get_or_try_init(start).await.cloned().map_err(|refusal| refusal_in_words(&refusal))
    }

    /// Starts every server that a role of the tree uses, all at the same time.
    ///
    /// # Errors
    /// The first one that cannot be used. Then none runs.
    pub async fn start(&self, discovery: &ToolDiscovery) -> Result<Vec<StartedServer>, String> {
        let definition = &discovery.definition;
        let used: Vec<(ServerName, ToolServer)> =
            definition.used_servers().map(|(name, server)| (name.clone(), server.clone())).collect();
        if used.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(beyond) = definition.servers_beyond_roles().into_iter().next() {
            let (role, server, beyond) = (beyond.role, beyond.server, beyond.beyond);
            return Err(format!(
                "server `{server}` may {beyond}, and `{role}`, which has tools of it, may not"
            ));
        }
        let prepared = self.prepared()?;
        for (name, server) in &used {
            if !prepared.permissions.allow(server) {
                return Err(format!(
                    "server `{name}` needs the user's permission: its file alone cannot start it"
                ));
            }
        }
        let mut starting: JoinSet<Result<(usize, StartedServer), String>> = JoinSet::new();
        for (place, (name, server)) in used.into_iter().enumerate() {
            let start = self.server_start(discovery, &prepared, &name, &server).await?;
            let wanted = wanted(definition, &name);
            starting.spawn(async move {
                let started = Server::start(name.clone(), server, start, &wanted).await;
                let said = |why| format!("server `{name}`: {why}");
                let (server, offered) = started.map_err(said)?;
                let tools = offered.tools.into_iter().map(|(name, offered)| (name, offered.spec)).collect();
                Ok((
                    place,
                    StartedServer {
                        name,
                        tools,
                        refused: offered.refused,
                        server: Arc::new(AgentServers::new(server)),
                    },
                ))
            });
        }
        let mut started: Vec<(usize, StartedServer)> = Vec::new();
        while let Some(one) = starting.join_next().await {
            match one {
                Ok(one) => started.push(one?),
                Err(error) => return Err(format!("a server was not started: {error}")),
            }
        }
        started.sort_by_key(|(place, _)| *place);
        Ok(started.into_iter().map(|(_, server)| server).collect())
    }

    async fn server_start(
        &self,
        discovery: &ToolDiscovery,
        prepared: &Prepared,
        name: &ServerName,
        server: &ToolServer,
    ) -> Result<ServerStart, String> {
        let outbound = Arc::clone(&self.outbound);
        match &server.address {
            ServerAddress::Http(address) => {
                let start = HttpStart::new(address, &prepared.permissions, outbound, self.logins.clone());
                start.map(ServerStart::Http).map_err(|why| format!("server `{name}`: {why}"))
            }
            ServerAddress::Command(_) => Ok(ServerStart::Process(ProcessStart {
                launcher: self.launcher(prepared).await?,
                tier: self.shared.tier,
                hidden: self.hidden.clone(),
                outbound,
                packages: self.packages.clone(),
                place: ServerPlace {
                    root: discovery.workspaces.clone().ok_or("there is no folder for servers to work in")?,
                    tree: discovery.tree,
                    server: name.clone(),
                    agent: None,
                },
                environment: prepared.permissions.environment_of(server),
            })),
        }
    }

    /// Refuses tools that say something else than in the tree before.
    async fn check_known(
        &self,
        definition: &Definition,
        server: &ServerName,
        used: BTreeMap<ToolName, Offered>,
    ) -> Result<(), String> {
        let (Some(known), Some(it)) = (self.known.clone(), definition.servers.get(server)) else {
            return Ok(());
        };
        let (allowance, allowed) = (it.allowance(), self.prepared()?.permissions.changed_tools);
        let ask = self.shared.ask.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let about = format!("server `{server}`: ");
        let checked = off_worker(move || {
            known_tools::check(&known, &allowance, &used, |code, changes| {
                allowed.contains(code) || ask.as_ref().is_some_and(|ask| ask(&format!("{about}{changes}")))
            })
        });
        checked.await.map_err(|why| format!("server `{server}`: {why}"))
    }

    async fn offer(&self, discovery: &ToolDiscovery) -> Result<Vec<OfferedTool>, String> {
        let mut offers = Vec::new();
        for server in self.start(discovery).await? {
            let mut used = BTreeMap::new();
            for name in named(&discovery.definition, &server) {
                let tool = server.tool(&name).ok_or_else(|| missing(&server, &name))?;
                used.extend(
                    server.server.any().offered(&name).map(|offered| (name.clone(), offered.clone())),
                );
                offers.push(OfferedTool::new(name, tool));
            }
            self.check_known(&discovery.definition, &server.name, used).await?;
        }
        Ok(offers)
    }
}

/// The tools of a server that roles name one by one.
fn wanted(definition: &Definition, server: &ServerName) -> Vec<ToolName> {
    let lists = definition.roles.values().filter_map(|role| match &role.caps.tools {
        Allow::All => None,
        Allow::Only(tools) => Some(tools),
    });
    let is_its = |tool: &&ToolName| ServerName::split(tool).is_some_and(|(of, _)| of == server.as_str());
    lists.flatten().filter(is_its).cloned().collect()
}

/// The tools of a server that roles name.
fn named(definition: &Definition, server: &StartedServer) -> Vec<ToolName> {
    let mut names = Vec::new();
    for role in definition.roles.values() {
        let of_role: Vec<&ToolName> = match &role.caps.tools {
            Allow::All => server.tools.keys().collect(),
            Allow::Only(tools) => tools.iter().collect(),
        };
        let is_its =
            |tool: &&ToolName| ServerName::split(tool).is_some_and(|(of, _)| of == server.name.as_str());
        for name in of_role.into_iter().filter(is_its) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
}

/// Why a role cannot have a tool that it names.
fn missing(server: &StartedServer, tool: &ToolName) -> String {
    let name = &server.name;
    let of_server = |own: &&String| name.tool(own).as_ref() == Some(tool);
    if let Some((own, why)) = server.refused.iter().find(|(own, _)| of_server(own)) {
        return format!("server `{name}`: tool `{own}` cannot be used: {why}");
    }
    let help = nearest::help(tool.as_str(), server.tools.keys().map(ToolName::as_str), "tools");
    format!("server `{name}` has no tool `{tool}`: {help}")
}

impl ToolSource for ToolServers {
    fn name(&self) -> &str {
        "mcp"
    }

    fn tools(&self, discovery: ToolDiscovery) -> Pending<Result<Vec<OfferedTool>, Fault>> {
        let servers = self.clone();
        Box::pin(async move {
            let refused = |message| Fault { message, ..Fault::new(FaultKind::Invalid) };
            servers.offer(&discovery).await.map_err(refused)
        })
    }
}
