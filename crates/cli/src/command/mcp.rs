//! `spinney mcp`: the servers of a tree file on their own. They start as a tree would start them, in boxes and with the
//! same questions, and end with the command.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use spinney::clock::{Clock, SystemClock};
use spinney::rng::Rng;
use spinney::tree_file::nearest;
use spinney_host::OwnDrivers;
use spinney_host::prepared::PreparedTree;
use spinney_host::server_trial::ServerTrial;
use spinney_kernel::context::Origin;
use spinney_kernel::port::Rights;
use spinney_kernel::port::tool::ToolAttempt;
use spinney_kernel::primitives::{CallId, Millis, Time, ToolName, TreeId};
use spinney_terminal::out;
use spinney_view::wording::{counted, one_line};

use super::mcp_install::{check_installed, install};
use super::mcp_login::login;
use super::run::start_request;
use crate::args::{Mcp, McpTry, ServersOfFile};
use crate::exit::Exit;
use crate::permission::agree_to_boxes;

/// A goal for a file that has none: no agent reads it.
const GOAL: &str = "Look at the servers.";

pub(super) async fn mcp(home: &Path, args: &Mcp) -> Result<Exit> {
    match args {
        Mcp::List(servers) => list(home, servers).await,
        Mcp::Install(args) => install(home, args).await,
        Mcp::Login(args) => login(home, args).await,
        Mcp::Try(call) => call_once(home, call).await,
    }
}

async fn list(home: &Path, args: &ServersOfFile) -> Result<Exit> {
    let clock = SystemClock::new();
    let running = Running::start(home, args).await?;
    let started = clock.now_ms();
    let count = counted(running.trial.servers.len() as u64, "server");
    out::line(&format!("{count}, started in {}", Millis(started.saturating_sub(running.began.0))))?;
    for server in &running.trial.servers {
        out::line(&format!("\n{} has {}", server.name, counted(server.tools.len() as u64, "tool")))?;
        for (name, spec) in &server.tools {
            out::line(&format!("  {name}  {}", one_line(&spec.description, 80)))?;
        }
        for (own, why) in &server.refused {
            out::line(&format!("  {own} cannot be used: {why}"))?;
        }
    }
    Ok(Exit::Completed)
}

async fn call_once(home: &Path, args: &McpTry) -> Result<Exit> {
    let running = Running::start(home, &args.servers).await?;
    let name: ToolName = args.tool.parse()?;
    let Some(tool) = running.trial.servers.iter().find_map(|server| server.tool(&name)) else {
        let all = running.trial.servers.iter().flat_map(|server| server.tools.keys()).map(ToolName::as_str);
        bail!("unknown tool `{name}`: {}", nearest::help(name.as_str(), all, "tools"));
    };
    let (role, caps) = running.caps()?;
    let path = vec![role.as_str().parse()?].into();
    let origin = Arc::new(Origin { tree: running.tree, path, role, goal: GOAL.into() });
    let mut attempt = ToolAttempt::new(origin, CallId(1), String::new(), name, args.arguments.clone());
    attempt.rights = caps;
    let answer = tool.call(attempt).await.map_err(|error| anyhow!("{}", error.fault.message))?;
    out::line(&answer.text)?;
    for part in &answer.parts {
        out::line(&format!("[{}, {} bytes of {}]", part.name, part.bytes.len(), part.media))?;
    }
    Ok(if answer.is_error { Exit::Failed } else { Exit::Completed })
}

/// The servers of a file, and the agent that may use all of them.
struct Running {
    trial: ServerTrial,
    prepared: PreparedTree,
    tree: TreeId,
    began: Time,
}

impl Running {
    async fn start(home: &Path, args: &ServersOfFile) -> Result<Self> {
        let file = args.file.as_path();
        let mut request = start_request(file, &args.given);
        request.given.goal.get_or_insert_with(|| GOAL.to_owned());
        let now = Time(SystemClock::new().now_ms());
        let mut prepared = PreparedTree::read(home, &request, &OwnDrivers::default(), now)?;
        prepared.keep_servers();
        if prepared.definition.servers.is_empty() {
            bail!("{} names no servers: write `mcp:` with the command of one", file.display());
        }
        check_installed(&prepared.definition, file)?;
        agree_to_boxes(&prepared.source.text, &prepared.box_needs, &prepared.allowed_boxes)?;
        prepared.permit_boxes();
        let began = Time(SystemClock::new().now_ms());
        let tree = Rng::fresh().tree_id(began.0);
        let trial =
            ServerTrial::start(&prepared, tree, &std::env::temp_dir()).await.map_err(|why| anyhow!(why))?;
        Ok(Self { trial, prepared, tree, began })
    }

    /// The agent that may use all of them, and its rights.
    fn caps(&self) -> Result<(spinney_kernel::primitives::RoleName, Rights)> {
        let role = self.prepared.definition.roles.iter().next().context("the file has no agent")?;
        Ok((role.0.clone(), Rights::from(&role.1.caps)))
    }
}
