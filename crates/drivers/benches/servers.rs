//! `cargo bench -p spinney-drivers --bench servers`: what a call of a server of tools costs through a tree's driver, in its
//! box, against the same call through the SDK alone; and how long twenty servers take to start together, against the slowest
//! one of them alone. The server is this program itself. Nothing here fails on a time.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

use std::io;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

use rmcp::model::{CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ClientHandler, RoleClient, serve_client};
use serde_json::json;
use spinney_drivers::mcp::{ServerPermissions, ToolServers};
use spinney_drivers::sandbox::guard_a_box;
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::context::Origin;
use spinney_kernel::definition::{
    Definition, FolderAccess, FolderGrants, Network, Role, ServerAddress, ToolServer,
};
use spinney_kernel::port::tool::{Tool, ToolAttempt};
use spinney_kernel::port::{Rights, ToolDiscovery, ToolSource as _};
use spinney_kernel::primitives::{CallId, ModelName, ServerName, TreeId};
use spinney_testkit::tool_server::{serve_if_asked, tool_server_command};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

const TREE: TreeId = TreeId::new([7; 16]);
const ROUNDS: usize = 301;
const STARTS: usize = 5;
const SERVERS: usize = 20;
/// The bounds: of a call, and of a start.
const CALL_MAX: f64 = 1.5;
const START_MAX: f64 = 1.2;

fn main() -> ExitCode {
    if let Some(exit) = guard_a_box() {
        return exit;
    }
    serve_if_asked(std::env::args(), std::env::vars());
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|word| word == "--test") {
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        calls().await;
        starts().await;
    });
    ExitCode::SUCCESS
}

async fn calls() {
    let scene = Scene::new(&["plain"]);
    let tools = scene.start().await;
    let sdk = serve_client(Us, PipeLines::start(&command("plain"))).await.unwrap();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let answer = tools[0].call(scene.attempt()).await.unwrap();
        ours.push(begun.elapsed().as_secs_f64() * 1e6);
        assert_eq!(answer.text, "so");
        let arguments = json!({ "text": "so" }).as_object().cloned().unwrap();
        let begun = Instant::now();
        let call = CallToolRequestParams::new("echo").with_arguments(arguments);
        sdk.peer().call_tool(call).await.unwrap();
        theirs.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    row("a call, in a box", median(ours), "µs", median(theirs), "the SDK alone", CALL_MAX);
}

async fn starts() {
    let mut moods = vec!["plain"; SERVERS - 1];
    moods.push("slow");
    let (mut together, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        for (moods, times) in [(&moods[..], &mut together), (&["slow"], &mut alone)] {
            let scene = Scene::new(moods);
            let begun = Instant::now();
            let tools = scene.start().await;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            assert_eq!(tools.len(), moods.len());
        }
    }
    row("20 servers start", median(together), "ms", median(alone), "the slowest alone", START_MAX);
}

fn row(what: &str, ours: f64, unit: &str, theirs: f64, peer: &str, bound: f64) {
    let ratio = ours / theirs;
    let verdict = if ratio <= bound { "holds" } else { "MISSED" };
    println!(
        "{what:<24} {ours:>8.1} {unit} {theirs:>8.1} {unit} ({peer}) {ratio:>6.2}x (at most {bound}x: {verdict})"
    );
}

/// The command of a server. A slow one takes a second more.
fn command(mood: &str) -> Vec<String> {
    let program = std::env::current_exe().unwrap().canonicalize().unwrap();
    let words = tool_server_command(&program, "serve", mood);
    if mood != "slow" {
        return words;
    }
    let shell = ["sh", "-c", r#"sleep 1; exec "$@""#, "sh"].map(str::to_owned);
    shell.into_iter().chain(words).collect()
}

/// A tree whose servers are in these moods.
struct Scene {
    home: TempDir,
    definition: Definition,
    permissions: ServerPermissions,
    folders: FolderGrants,
}

impl Scene {
    fn new(moods: &[&str]) -> Self {
        let program = command("plain")[0].clone();
        let around = Path::new(&program).parent().unwrap().to_str().unwrap().parse().unwrap();
        let folders = FolderGrants::default().with(around, FolderAccess::Read);
        let model: ModelName = "m".parse().unwrap();
        let names: Vec<ServerName> = (0..moods.len()).map(|at| format!("s{at}").parse().unwrap()).collect();
        let mut role =
            Role::new(model.clone()).with_tools(names.iter().map(|name| name.tool("echo").unwrap()));
        role.caps.folders = Some(folders.clone());
        let mut definition = Definition::new("bench", "Work.", "lead".parse().unwrap())
            .with_model(model, Default::default())
            .with_role("lead".parse().unwrap(), role);
        let mut permissions = ServerPermissions::default();
        for (name, mood) in names.into_iter().zip(moods) {
            let server = ToolServer {
                address: ServerAddress::Command(command(mood)),
                env: Default::default(),
                network: Network::Denied,
                folders: folders.clone(),
                tools: None,
                timeout_ms: 20_000,
                per: Default::default(),
                sampling: false,
            };
            permissions.servers.insert(server.allowance());
            definition.servers.insert(name, server);
        }
        Self { home: TempDir::new().unwrap(), definition, permissions, folders }
    }

    async fn start(&self) -> Vec<Arc<dyn Tool>> {
        let servers = ToolServers::new("/proc/self/exe".into());
        servers.prepare(self.permissions.clone(), Vec::new());
        let mut discovery = ToolDiscovery::new(TREE, Arc::new(self.definition.clone()));
        discovery.workspaces = Some(Workspaces::root(self.home.path()).into());
        let offered = servers.tools(discovery).await.map_err(|fault| fault.message).unwrap();
        offered.into_iter().map(|offered| offered.tool).collect()
    }

    fn attempt(&self) -> ToolAttempt {
        let (path, role) = (vec!["lead".parse().unwrap()].into(), "lead".parse().unwrap());
        let origin = Arc::new(Origin { tree: TREE, path, role, goal: "Work.".into() });
        let tool = "s0__echo".parse().unwrap();
        let args = r#"{"text":"so"}"#.to_owned();
        let mut attempt = ToolAttempt::new(origin, CallId(1), String::new(), tool, args);
        let granted = self.folders.iter();
        attempt.rights =
            granted.fold(Rights::none(), |rights, (path, access)| rights.with_folder(path.as_str(), access));
        attempt
    }
}

struct Us;

impl ClientHandler for Us {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("bench", "1"))
    }
}

/// What the SDK needs at least to talk to a process.
struct PipeLines {
    from: Lines<BufReader<ChildStdout>>,
    to: Arc<Mutex<ChildStdin>>,
    _child: tokio::process::Child,
}

impl PipeLines {
    fn start(words: &[String]) -> Self {
        let folder = TempDir::new().unwrap().keep();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap()).lines();
        let to = Arc::new(Mutex::new(child.stdin.take().unwrap()));
        Self { from, to, _child: child }
    }
}

impl Transport<RoleClient> for PipeLines {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let to = Arc::clone(&self.to);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            to.lock().await.write_all(&line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let line = self.from.next_line().await.ok()??;
            // The name of the test is on the first one.
            if let Ok(message) = serde_json::from_str(&line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
