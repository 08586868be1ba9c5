//! The servers of trees: as a source of tools, they start those of a tree that its roles use, all at once, and give it the
//! tools that its roles name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use spinney_kernel::definition::{Allow, Definition, ToolServer, ToolSpec};
use spinney_kernel::port::tool::Tool;
use spinney_kernel::port::{OfferedTool, Pending, ToolDiscovery, ToolSource};
use spinney_kernel::primitives::{Fault, FaultKind, ServerName, ToolName, nearest};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use super::permissions::ServerPermissions;
use super::process::ServerStart;
use super::server::Server;
use super::tool::ServerTool;
use crate::commands::refusal_in_words;
use crate::folders::HiddenFolders;
use crate::network::{Outbound, SystemOutbound};
use crate::off_worker::off_worker;
use crate::sandbox::{BoxLauncher, BoxTierChoice};
use crate::workspace::Workspaces;

/// Starts the servers of trees. Clones are the same driver.
#[derive(Clone)]
pub struct ToolServers {
    shared: Arc<Shared>,
    hidden: HiddenFolders,
    outbound: Arc<dyn Outbound>,
}

struct Shared {
    helper: PathBuf,
    tier: BoxTierChoice,
    launcher: OnceCell<Arc<BoxLauncher>>,
    prepared: Mutex<Option<Prepared>>,
}

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
    server: Arc<Server>,
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
        let shared = Shared { helper, tier, launcher: OnceCell::new(), prepared: Mutex::default() };
        Self {
            shared: Arc::new(shared),
            hidden: HiddenFolders::default(),
            outbound: Arc::new(SystemOutbound::default()),
        }
    }

    /// Keeps these folders from every server, whatever is granted around them.
    #[must_use]
    pub fn hiding(mut self, hidden: HiddenFolders) -> Self {
        self.hidden = hidden;
        self
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
        let launcher = self.launcher(&prepared).await?;
        let mut starting: JoinSet<Result<(usize, StartedServer), String>> = JoinSet::new();
        for (place, (name, server)) in used.into_iter().enumerate() {
            let folder = self.folder(discovery, &name).await?;
            let start = ServerStart {
                launcher: Arc::clone(&launcher),
                tier: self.shared.tier,
                hidden: self.hidden.clone(),
                outbound: Arc::clone(&self.outbound),
                folder,
                environment: prepared.permissions.environment_of(&server),
            };
            starting.spawn(async move {
                let started = Server::start(name.clone(), server, start).await;
                let said = |why| format!("server `{name}`: {why}");
                let (server, offered) = started.map_err(said)?;
                let tools = offered.tools.into_iter().map(|(name, offered)| (name, offered.spec)).collect();
                Ok((place, StartedServer { name, tools, refused: offered.refused, server: Arc::new(server) }))
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

    /// A folder that only this server of this tree has.
    async fn folder(&self, discovery: &ToolDiscovery, server: &ServerName) -> Result<PathBuf, String> {
        let root = discovery.workspaces.clone();
        let root = root.ok_or("there is no folder for servers to work in")?;
        let (tree, server) = (discovery.tree, server.clone());
        let made =
            off_worker(move || Workspaces::below(&root, tree)?.server_folder(&root, server.as_str())).await;
        made.map_err(|fault| {
            format!("server `{server}` has no folder: {}", fault.source, server = fault.place)
        })
    }

    async fn offer(&self, discovery: &ToolDiscovery) -> Result<Vec<OfferedTool>, String> {
        let mut offers = Vec::new();
        for server in self.start(discovery).await? {
            for name in named(&discovery.definition, &server) {
                let tool = server.tool(&name).ok_or_else(|| missing(&server, &name))?;
                offers.push(OfferedTool::new(name, tool));
            }
        }
        Ok(offers)
    }
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
