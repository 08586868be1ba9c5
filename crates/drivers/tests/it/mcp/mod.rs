//! Servers of tools as a tree uses them: found when it starts, called, told to stop, ended and started again; and servers
//! that do everything wrong. Each runs in a box. The server is this program itself.

mod asks;
mod http;
mod resources;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use spinney_drivers::mcp::{ServerPermissions, ToolServers};
use spinney_drivers::sandbox::BoxTierChoice;
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::context::Origin;
use spinney_kernel::definition::{
    Allow, Definition, FolderAccess, FolderGrants, HttpAddress, Network, OnLost, Role, ServerAddress,
    ToolServer,
};
use spinney_kernel::port::tool::{Tool, ToolAnswer, ToolAttempt};
use spinney_kernel::port::{Rights, ToolDiscovery, ToolSource};
use spinney_kernel::primitives::{CallId, ServerName, ToolName};
use spinney_testkit::processes::{HeldProcesses, processes_below};
use spinney_testkit::tool_server::{serve_if_asked, tool_server_command};
use tempfile::TempDir;

use crate::boxes::{ATTEMPTS, folder, launcher, tiers};
use crate::files::TREE;

/// The test that becomes the server.
const SERVER: &str = "mcp::this_program_is_a_server_when_a_box_starts_it";

/// Becomes the server when a box starts this program.
#[test]
#[expect(clippy::disallowed_methods, reason = "the server says which variables it has")]
fn this_program_is_a_server_when_a_box_starts_it() {
    serve_if_asked(std::env::args(), std::env::vars());
}

/// A server in a mood, with this program to be read, and a tree that uses it.
struct Setting {
    home: TempDir,
    server: ToolServer,
    tools: Vec<String>,
    permissions: ServerPermissions,
    tier: BoxTierChoice,
}

impl Setting {
    fn new(mood: &str) -> Self {
        let command = tool_server_command(&std::env::current_exe().unwrap(), SERVER, mood);
        let program = Path::new(&command[0]).canonicalize().unwrap();
        let around = program.parent().unwrap().to_str().unwrap().parse().unwrap();
        let server = ToolServer {
            address: ServerAddress::Command(command),
            env: Default::default(),
            network: Network::Denied,
            folders: FolderGrants::default().with(around, FolderAccess::Read),
            tools: None,
            timeout_ms: 20_000,
            per: Default::default(),
            sampling: false,
        };
        let (permissions, tools) = (ServerPermissions::default(), vec!["echo".to_owned()]);
        Self { home: folder(), server, tools, permissions, tier: BoxTierChoice::Best }
    }

    /// One that is reached over HTTP.
    fn elsewhere(url: &str) -> Self {
        let mut setting = Self::new("elsewhere");
        let address = HttpAddress { url: url.to_owned(), auth: None };
        setting.server.network = address.check().map(|host| Network::hosts([host])).unwrap_or_default();
        setting.server.folders = FolderGrants::default();
        setting.server.address = ServerAddress::Http(address);
        setting
    }

    fn with_tools(mut self, tools: &[&str]) -> Self {
        self.tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        self
    }

    fn definition(&self) -> Definition {
        let model: spinney_kernel::primitives::ModelName = "m".parse().unwrap();
        let mut role = Role::new(model.clone()).with_tools(self.tools.iter().map(|tool| tool_name(tool)));
        role.caps.folders = Some(self.server.folders.clone());
        role.caps.network = self.server.network.clone();
        let mut definition = Definition::new("test", "Work.", "lead".parse().unwrap())
            .with_model(model, Default::default())
            .with_role("lead".parse().unwrap(), role);
        definition.servers.insert(name(), self.server.clone());
        definition
    }

    fn discovery(&self, definition: Definition) -> ToolDiscovery {
        let mut discovery = ToolDiscovery::new(TREE, Arc::new(definition));
        discovery.workspaces = Some(Workspaces::root(self.home.path()).into());
        discovery
    }

    fn servers(&self) -> ToolServers {
        let mut permissions = self.permissions.clone();
        permissions.servers.insert(self.server.allowance());
        let servers = ToolServers::with_tier(ATTEMPTS.into(), self.tier);
        servers.prepare(permissions, Vec::new());
        servers
    }

    async fn try_start(&self) -> Result<Running, String> {
        let discovery = self.discovery(self.definition());
        let offered = self.servers().tools(discovery).await.map_err(|fault| fault.message)?;
        let tools = offered.into_iter().map(|offered| (offered.name, offered.tool)).collect();
        let granted = self.server.folders.iter();
        let rights = granted
            .fold(Rights::none().with_network(self.server.network.clone()), |rights, (path, access)| {
                rights.with_folder(path.as_str(), access)
            });
        Ok(Running { tools, rights })
    }

    async fn start(&self) -> Running {
        self.try_start().await.unwrap()
    }
}

fn name() -> ServerName {
    "test".parse().unwrap()
}

fn tool_name(tool: &str) -> ToolName {
    name().tool(tool).unwrap()
}

/// The tools of a tree whose server runs.
struct Running {
    tools: Vec<(ToolName, Arc<dyn Tool>)>,
    rights: Rights,
}

impl Running {
    fn tool(&self, tool: &str) -> &Arc<dyn Tool> {
        &self.tools.iter().find(|(name, _)| *name == tool_name(tool)).unwrap().1
    }

    fn attempt(&self, tool: &str, args: &Value) -> ToolAttempt {
        let path = vec!["lead".parse().unwrap()].into();
        let origin =
            Arc::new(Origin { tree: TREE, path, role: "lead".parse().unwrap(), goal: "Work.".into() });
        let mut attempt =
            ToolAttempt::new(origin, CallId(1), String::new(), tool_name(tool), args.to_string());
        attempt.rights.clone_from(&self.rights);
        attempt
    }

    async fn call(&self, tool: &str, args: Value) -> ToolAnswer {
        self.tool(tool).call(self.attempt(tool, &args)).await.unwrap()
    }

    async fn said(&self, tool: &str, args: Value) -> String {
        self.call(tool, args).await.text
    }
}

#[tokio::test]
async fn tools_of_a_server_are_called() {
    for tier in tiers(&launcher().await) {
        let mut setting = Setting::new("plain")
            .with_tools(&["echo", "fail", "refuse", "image", "quiet", "confused", "read"]);
        setting.tier = tier;
        let running = setting.start().await;
        assert_eq!(running.tools.len(), 7);
        let spec = running.tool("echo").spec();
        assert_eq!((spec.description.as_str(), spec.lost), ("The tool echo.", OnLost::Presumed));
        assert!(spec.schema.contains(r#""text":{"type":"string"}"#), "{}", spec.schema);
        assert_eq!(running.tool("read").spec().lost, OnLost::Repeatable);
        let said = running.call("echo", json!({ "text": "so; `id`" })).await;
        assert_eq!((said.text.as_str(), said.is_error), ("so; `id`", false));
        let failed = running.call("fail", json!({})).await;
        assert_eq!((failed.text.as_str(), failed.is_error), ("no luck", true));
        assert_eq!(running.said("refuse", json!({})).await, "server `test`: error -32602: Unknown [2J tool");
        assert_eq!(running.said("quiet", json!({})).await, "it returned nothing");
        assert_eq!(
            running.said("confused", json!({})).await,
            "server `test`: its answer has another form than the protocol"
        );
        let image = running.call("image", json!({})).await;
        assert_eq!((image.parts.len(), image.parts[0].media.as_str()), (1, "image/png"));
        // P17: the server has its own folder and what it was granted, and nothing else.
        let letter = setting.home.path().join("letter.txt");
        fs::write(&letter, "Dear Mother,").unwrap();
        let read = running.said("read", json!({ "path": letter })).await;
        assert!(read == "NotFound" || read == "PermissionDenied", "{read}");
    }
}

/// Both ways of saying hello work: the newest, and the one of all versions before.
#[tokio::test]
async fn servers_of_every_version_are_called() {
    for mood in ["newest", "plain", "older"] {
        let running = Setting::new(mood).start().await;
        assert_eq!(running.said("echo", json!({ "text": mood })).await, mood);
    }
}

/// What a server has is in its box and in no journal: variables by name, with values that the user allowed.
#[tokio::test]
async fn a_server_has_the_variables_that_were_allowed_and_no_others() {
    let mut setting = Setting::new("plain").with_tools(&["variable"]);
    setting.server.env = ["TOKEN", "UNSET"].map(str::to_owned).into();
    setting.permissions.environment = [
        ("TOKEN".to_owned(), Some("secret".into())),
        ("UNSET".to_owned(), None),
        ("OTHER".to_owned(), Some("x".into())),
    ]
    .into();
    let running = setting.start().await;
    let mut said = Vec::new();
    for variable in ["TOKEN", "UNSET", "OTHER", "CARGO"] {
        said.push(running.said("variable", json!({ "text": variable })).await);
    }
    assert_eq!(said, ["secret", "not set", "not set", "not set"]);
    assert!(setting.server.allowance().starts_with("$TOKEN $UNSET /"));
}

/// P17: rights only shrink. An agent that has less than a server does not use it, and nothing starts without permission.
#[tokio::test]
async fn p17_a_server_is_used_only_by_agents_that_have_what_it_has() {
    let setting = Setting::new("plain");
    let mut running = setting.start().await;
    running.rights = Rights::none();
    let refused = running.call("echo", json!({ "text": "so" })).await;
    assert!(
        refused.is_error
            && refused.text.starts_with("`test__echo` was not called: server `test` may read `/")
    );

    let mut definition = setting.definition();
    definition.roles["lead"].caps.folders = Some(FolderGrants::default());
    let error = setting.servers().start(&setting.discovery(definition)).await.map(drop).unwrap_err();
    assert!(error.contains("and `lead`, which has tools of it, may not"), "{error}");
    let mut definition = setting.definition();
    definition.servers["test"].network = Network::hosts(["example.org".parse().unwrap()]);
    let error = setting.servers().start(&setting.discovery(definition)).await.map(drop).unwrap_err();
    assert!(error.starts_with("server `test` may connect to `example.org`, and `lead`"), "{error}");

    let other = ToolServers::new(ATTEMPTS.into());
    let error = other.start(&setting.discovery(setting.definition())).await.map(drop).unwrap_err();
    assert!(error.contains("not prepared"), "{error}");
    other.prepare(ServerPermissions::default(), Vec::new());
    let error = other.start(&setting.discovery(setting.definition())).await.map(drop).unwrap_err();
    assert_eq!(error, "server `test` needs the user's permission: its file alone cannot start it");

    // Without a role that uses it, it is not started at all.
    let mut definition = setting.definition();
    definition.roles["lead"].caps.tools = Allow::only(["read_file".parse().unwrap()]);
    assert!(other.start(&setting.discovery(definition)).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_tool_that_a_server_does_not_have_keeps_the_tree_from_starting() {
    let error = Setting::new("plain").with_tools(&["ecko"]).try_start().await.map(drop).unwrap_err();
    assert!(
        error.starts_with("server `test` has no tool `test__ecko`: ") && error.contains("test__echo"),
        "{error}"
    );
    let mut setting = Setting::new("plain").with_tools(&["echo"]);
    setting.server.tools = Some(["read".to_owned()].into());
    let error = setting.try_start().await.map(drop).unwrap_err();
    assert!(error.starts_with("server `test` has no tool `test__echo`"), "{error}");
}

/// A call that takes too long, or that nobody waits for any more, is cancelled at the server.
#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_at_the_server() {
    let mut setting = Setting::new("plain").with_tools(&["wait", "seen"]);
    setting.server.timeout_ms = 300;
    let running = setting.start().await;
    let said = running.call("wait", json!({})).await;
    assert_eq!(said.text, "timed out after 300 ms, and server `test` was told to stop: ask for less at once");
    assert!(said.is_error);
    setting.server.timeout_ms = 60_000;
    assert_eq!(running.said("seen", json!({})).await, "[1, 1, 1]");
    let waiting = running.tool("wait").call(running.attempt("wait", &json!({})));
    // It is under way when the next call is answered.
    let next = async { while running.said("seen", json!({})).await != "[2, 1, 1]" {} };
    tokio::select! {
        _ = waiting => panic!("it waits"),
        () = next => {}
    }
    assert_eq!(running.said("seen", json!({})).await, "[2, 2, 1]");
}

/// A server that ends is started again, three times. The call under way is lost, unless its tool may be repeated.
#[tokio::test]
async fn a_server_that_ends_is_started_again_three_times() {
    let setting = Setting::new("plain").with_tools(&["echo", "crash", "crash_once", "count"]);
    let running = setting.start().await;
    assert_eq!(running.said("crash_once", json!({})).await, "survived");
    let lost = running.call("crash", json!({})).await;
    assert_eq!(
        lost.text,
        "lost: server `test` ended during this call, and what the call did is unknown: exit code 7; it wrote: [31mit is too much for me [0m"
    );
    assert_eq!(running.said("count", json!({})).await, "3");
    running.call("crash", json!({})).await;
    assert_eq!(running.said("echo", json!({ "text": "again" })).await, "again");
    running.call("crash", json!({})).await;
    let ended = running.call("echo", json!({ "text": "again" })).await;
    assert_eq!(
        (ended.text.as_str(), ended.is_error),
        ("server `test` ended, and is not started a 4th time", true)
    );
}

/// G28 (changed descriptions): what a tool says of itself after the start is not believed in this tree.
#[tokio::test]
async fn g28_a_tool_with_another_description_is_not_called_any_more() {
    let setting = Setting::new("plain").with_tools(&["echo", "moody", "change"]);
    let running = setting.start().await;
    assert_eq!(running.said("moody", json!({})).await, "did it");
    assert_eq!(running.said("change", json!({})).await, "changed");
    let refused = running.call("moody", json!({})).await;
    assert!(
        refused.is_error && refused.text.contains("now describes this tool differently"),
        "{}",
        refused.text
    );
    assert_eq!(running.said("echo", json!({ "text": "still" })).await, "still");

    // The same after a restart.
    let setting = Setting::new("plain").with_tools(&["moody", "crash"]);
    let running = setting.start().await;
    running.call("crash", json!({})).await;
    assert!(running.said("moody", json!({})).await.contains("now describes this tool differently"));
}

/// A tool that a server announces after its first list can be used, and nothing waits for one that never comes.
#[tokio::test]
async fn tools_that_a_server_announces_late_are_found() {
    let running = Setting::new("late").with_tools(&["moody"]).start().await;
    assert_eq!(running.said("moody", json!({})).await, "did it");
    let error = Setting::new("late").with_tools(&["none"]).try_start().await.map(drop).unwrap_err();
    assert!(error.starts_with("server `test` has no tool `test__none`"), "{error}");
}

/// G28 (a hostile server): what never becomes a server is refused in words, in bounded time.
#[tokio::test]
async fn g28_servers_that_lie_about_their_tools_are_refused() {
    for (mood, why) in [
        ("dying", "server `test`: it ended before it answered: exit code 3; it wrote: [31mit is too much"),
        ("garbage", "server `test`: its first answer has another form than the protocol"),
        ("endless", "server `test`: its list of tools does not end"),
        ("paged", "server `test`: its list of tools has more than 32 pages"),
        ("many", "server `test`: it has more than 512 tools"),
        ("lying", "server `test`: its list of tools has another form than the protocol"),
        ("huge", "server `test`: error -32603: its answer has more than"),
        ("mute", "server `test`: it did not list its tools in time"),
    ] {
        let error = Setting::new(mood).try_start().await.map(drop).unwrap_err();
        assert!(error.starts_with(why), "{mood}: {error}");
    }
    let mut missing = Setting::new("plain");
    missing.server.address = ServerAddress::Command(vec!["no-such-server".to_owned()]);
    let error = missing.try_start().await.map(drop).unwrap_err();
    assert!(error.contains("its program cannot be run (No such file"), "{error}");
}

/// G28 (huge answers, floods, requests of its own): what a running server sends is bounded, and it can still be called.
#[tokio::test]
async fn g28_floods_and_huge_answers_do_not_reach_the_tree() {
    let setting = Setting::new("plain").with_tools(&["echo", "long", "flood", "ask"]);
    let running = setting.start().await;
    let long = running.call("long", json!({ "bytes": 40_000_000 })).await;
    assert!(long.is_error && long.text.contains("its answer has more than 12582912 bytes"), "{}", long.text);
    assert_eq!(running.said("long", json!({ "bytes": 3_000_000 })).await.len(), 3_000_000);
    assert_eq!(running.said("flood", json!({ "messages": 400 })).await, "flooded");
    // Beyond that each message waits, and the server with it.
    assert_eq!(running.said("flood", json!({ "messages": 600 })).await, "flooded");
    assert_eq!(running.said("ask", json!({})).await, "asked");
    assert_eq!(running.said("echo", json!({ "text": "still" })).await, "still");
    let replies = setting.home.path().join("workspace").join(TREE.to_string()).join("server.test/replies");
    let read = || fs::read_to_string(&replies).unwrap_or_default();
    while read().lines().count() < 4 {
        assert_eq!(running.said("echo", json!({ "text": "on" })).await, "on");
    }
    // Sampling, what is unknown, and a question to a person without a person are refused. Roots are its own folders.
    let refused = read().lines().filter(|reply| reply.contains("\"error\"")).count();
    assert_eq!(refused, 3, "{}", read());
    assert!(read().contains(r#""result":{"roots":[{"uri":"file:///"#), "{}", read());
}

/// Nothing outlives the tools of a tree.
#[tokio::test]
async fn a_server_ends_with_the_tools_of_its_tree() {
    let setting = Setting::new("ending");
    let running = setting.start().await;
    let is_it = |pid: &u32| {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.contains("mood:ending")
    };
    let pids: Vec<u32> = processes_below(std::process::id()).into_iter().filter(is_it).collect();
    let processes = HeldProcesses::new(&pids);
    assert_eq!((processes.count(), processes.have_ended()), (1, false));
    drop(running);
    while !processes.have_ended() {
        tokio::task::yield_now().await;
    }
}
