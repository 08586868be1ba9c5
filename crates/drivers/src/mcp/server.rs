//! One server of a tree: it is started again when it ends, a few times, and its tools stay what the tree was started with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;
use spinney_kernel::definition::{FolderGrants, Network, OnLost, ServerBeyond, ServerScope, ToolServer};
use spinney_kernel::port::Rights;
use spinney_kernel::port::tool::{ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::{AgentId, Millis, ServerName, ToolName};
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::connection::{CallFault, Connection};
use super::offered::{Offered, OfferedTools};
use super::open_calls::OpenCalls;
use super::server_start::ServerStart;

/// The waits before a server is started again. After the last one it is not.
const RESTART_WAITS: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(4)];

/// How long a tool that a role names may be missing, and how often the list may change meanwhile.
const LATE_TOOLS_WAIT: Duration = Duration::from_secs(2);
const LATE_LISTS_MAX: usize = 3;

/// A server with the tools that it had when its tree started.
pub(super) struct Server {
    name: ServerName,
    definition: ToolServer,
    start: ServerStart,
    tools: Arc<BTreeMap<ToolName, Offered>>,
    calls: Arc<OpenCalls>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    was_started: bool,
    restarts: usize,
    /// Why it is not started any more.
    ended: Option<String>,
    /// Tools that are not what they were, and how.
    changed: BTreeMap<ToolName, ToolChange>,
}

/// What became of a tool after its tree started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolChange {
    Gone,
    Described,
}

impl Server {
    /// Starts it and asks for its tools.
    pub(super) async fn start(
        name: ServerName,
        definition: ToolServer,
        start: ServerStart,
        wanted: &[ToolName],
    ) -> Result<(Self, OfferedTools), String> {
        let calls = Arc::new(OpenCalls::default());
        let connection = Connection::start(&name, &start, &definition, &calls).await?;
        let mut offered = OfferedTools::new(&name, &definition, connection.listed().await?);
        // Some servers have more tools once they know what we can do.
        let lacks = |offered: &OfferedTools| wanted.iter().any(|tool| !offered.tools.contains_key(tool));
        for _ in 0..LATE_LISTS_MAX {
            if !lacks(&offered) || !connection.wait_for_changed_tools(LATE_TOOLS_WAIT).await {
                break;
            }
            offered = OfferedTools::new(&name, &definition, connection.listed().await?);
        }
        let connection = Some(Arc::new(connection));
        let state = State { connection, was_started: true, ..State::default() };
        let tools = Arc::new(offered.tools.clone());
        Ok((Self { name, definition, start, tools, calls, state: Mutex::new(state) }, offered))
    }

    /// The same for one agent alone. It starts with its first call.
    pub(super) fn for_agent(&self, agent: &[AgentId]) -> Self {
        Self {
            name: self.name.clone(),
            definition: self.definition.clone(),
            start: self.start.for_agent(agent),
            tools: Arc::clone(&self.tools),
            calls: Arc::default(),
            state: Mutex::default(),
        }
    }

    pub(super) fn scope(&self) -> ServerScope {
        self.definition.per
    }

    pub(super) fn offered(&self, tool: &ToolName) -> Option<&Offered> {
        self.tools.get(tool)
    }

    /// What it has and an agent with these rights does not.
    pub(super) fn beyond(&self, rights: &Rights) -> ServerBeyond {
        let folders = rights
            .folders
            .iter()
            .filter_map(|folder| Some((folder.path.to_str()?.parse().ok()?, folder.access)));
        let folders =
            folders.fold(FolderGrants::default(), |grants, (path, access)| grants.with(path, access));
        let network: &Network = &rights.network;
        self.definition.beyond(network, &folders)
    }

    /// Calls a tool. A call that was under way when the server ended is made again only if that changes nothing.
    pub(super) async fn call(
        &self,
        tool: &ToolName,
        arguments: JsonObject,
        attempt: &ToolAttempt,
    ) -> ToolAnswer {
        let name = &self.name;
        let entry = self.calls.enter(attempt);
        let Some(offered) = self.tools.get(tool) else {
            return ToolAnswer::failed(format!("server `{name}` has no such tool"));
        };
        let mut is_repeatable = offered.spec.lost == OnLost::Repeatable;
        let mut is_first = true;
        loop {
            let connection = match self.connection(tool).await {
                Ok(connection) => connection,
                Err(why) => return ToolAnswer::failed(why),
            };
            let within = Duration::from_millis(self.definition.timeout_ms);
            match connection.call(&entry.call, offered, arguments.clone(), within).await {
                Ok(answer) => return answer,
                // A session that the server forgot is begun again.
                Err(CallFault::NotReached(_)) if is_first && !connection.is_open() => is_first = false,
                Err(CallFault::NotReached(why)) => {
                    return ToolAnswer::failed(format!(
                        "server `{name}` was not reached, and nothing was done: {why}"
                    ));
                }
                Err(CallFault::Ended(_)) if is_repeatable => is_repeatable = false,
                Err(CallFault::Ended(how)) => {
                    return ToolAnswer::failed(format!(
                        "lost: server `{name}` {}, and what the call did is unknown: {how}",
                        self.end_in_words()
                    ));
                }
                Err(CallFault::TimedOut) => {
                    let within = Millis(self.definition.timeout_ms);
                    return ToolAnswer::failed(format!(
                        "timed out after {within}, and server `{name}` was told to stop: ask for less at once"
                    ));
                }
                Err(CallFault::Refused(why)) => return ToolAnswer::failed(format!("server `{name}`: {why}")),
            }
        }
    }

    fn end_in_words(&self) -> &'static str {
        match self.start {
            ServerStart::Process(_) => "ended during this call",
            ServerStart::Http(_) => "did not answer this call",
        }
    }

    /// The running server, started again if it has ended, if the tool is still what it was.
    async fn connection(&self, tool: &ToolName) -> Result<Arc<Connection>, String> {
        let name = &self.name;
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_none_or(|connection| !connection.is_open()) {
            self.start_again(&mut state).await?;
        }
        let Some(connection) = state.connection.clone() else {
            return Err(format!("server `{name}` does not run"));
        };
        if connection.take_changed_tools() {
            match connection.listed().await {
                Ok(listed) => {
                    let now = OfferedTools::new(name, &self.definition, listed).tools;
                    self.compare(&mut state, &now);
                }
                Err(why) => tracing::warn!("server {name} says that its tools have changed, and {why}"),
            }
        }
        match state.changed.get(tool) {
            None => Ok(connection),
            Some(ToolChange::Gone) => Err(format!("server `{name}` no longer has this tool")),
            Some(ToolChange::Described) => Err(format!(
                "server `{name}` now describes this tool differently, so it is not called in this tree: a person has to look at it and start a new one"
            )),
        }
    }

    async fn start_again(&self, state: &mut State) -> Result<(), String> {
        let name = &self.name;
        if let Some(why) = &state.ended {
            return Err(why.clone());
        }
        // The old one ends before there is another one.
        state.connection = None;
        let mut why = String::new();
        while let Some(wait) = RESTART_WAITS.get(state.restarts) {
            let is_first = !std::mem::replace(&mut state.was_started, true);
            if !is_first {
                state.restarts += 1;
                sleep(*wait).await;
            }
            let started = async {
                let connection = Connection::start(name, &self.start, &self.definition, &self.calls).await?;
                let listed = connection.listed().await?;
                Ok::<_, String>((connection, listed))
            };
            match started.await {
                Ok((connection, listed)) => {
                    if !is_first {
                        tracing::warn!(
                            "server {name} had ended and was started again ({} of {})",
                            state.restarts,
                            RESTART_WAITS.len()
                        );
                    }
                    let now = OfferedTools::new(name, &self.definition, listed).tools;
                    self.compare(state, &now);
                    state.connection = Some(Arc::new(connection));
                    return Ok(());
                }
                Err(error) => why = error,
            }
        }
        let last = if why.is_empty() { String::new() } else { format!(": {why}") };
        let ended =
            format!("server `{name}` ended, and is not started a {}th time{last}", RESTART_WAITS.len() + 1);
        state.ended = Some(ended.clone());
        Err(ended)
    }

    /// Notes which tools are not what they were. What is new has to wait for another tree.
    fn compare(&self, state: &mut State, now: &BTreeMap<ToolName, Offered>) {
        let name = &self.name;
        for (tool, before) in self.tools.iter() {
            let change = match now.get(tool) {
                None => Some(ToolChange::Gone),
                Some(after) if after.hash != before.hash => Some(ToolChange::Described),
                Some(_) => None,
            };
            let known = state.changed.get(tool).copied();
            match change {
                Some(change) if known != Some(change) => {
                    let what = match change {
                        ToolChange::Gone => "has no tool",
                        ToolChange::Described => "has another description of",
                    };
                    tracing::warn!(
                        "server {name} now {what} {tool}: agents of this tree cannot call it any more"
                    );
                    state.changed.insert(tool.clone(), change);
                }
                // A description that changed once is not believed again.
                None if known == Some(ToolChange::Gone) => drop(state.changed.remove(tool)),
                Some(_) | None => {}
            }
        }
        let new: Vec<&str> =
            now.keys().filter(|tool| !self.tools.contains_key(*tool)).map(ToolName::as_str).collect();
        if !new.is_empty() {
            tracing::warn!(
                "server {name} has new tools, for trees that start from now on: {}",
                new.join(", ")
            );
        }
    }
}
