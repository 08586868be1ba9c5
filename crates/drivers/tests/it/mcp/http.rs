//! Servers that run elsewhere and are reached over HTTP, and those that do it wrong.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde_json::json;
use spinney_drivers::mcp::{ServerPermissions, ToolServers};
use spinney_drivers::network::Outbound;
use spinney_kernel::definition::{HttpAddress, ServerAddress, ServerAuth};
use spinney_kernel::port::{Pending, Rights, ToolSource as _};
use spinney_testkit::http_tool_server::HttpToolServer;
use tokio::net::TcpStream;

use super::Setting;
use crate::boxes::ATTEMPTS;

const KEY: &str = "open-sesame-7";

impl Setting {
    fn with_key(mut self, header: Option<&str>) -> Self {
        if let ServerAddress::Http(address) = &mut self.server.address {
            let header = header.map(str::to_owned);
            address.auth = Some(ServerAuth { key_env: "NOTES_TOKEN".to_owned(), header });
        }
        self.permissions.environment.insert("NOTES_TOKEN".to_owned(), Some(KEY.into()));
        self
    }
}

/// Whether it answers with JSON or with streams, and in the versions with a handshake and without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_of_a_server_elsewhere_are_called() {
    for mood in ["plain", "stream", "newest"] {
        let server = HttpToolServer::start(mood);
        let running = Setting::elsewhere(&server.url()).with_tools(&["echo", "header"]).start().await;
        assert_eq!(running.said("echo", json!({ "text": mood })).await, mood);
        let version = running.said("header", json!({ "text": "mcp-protocol-version" })).await;
        assert_eq!(version, if mood == "newest" { "2026-07-28" } else { "2025-06-18" });
        let session = running.said("header", json!({ "text": "mcp-session-id" })).await;
        assert_eq!(session, if mood == "newest" { "not sent" } else { "session-1" });
        if mood == "newest" {
            let name = running.said("header", json!({ "text": "mcp-name" })).await;
            let method = running.said("header", json!({ "text": "mcp-method" })).await;
            assert_eq!((name.as_str(), method.as_str()), ("header", "tools/call"));
        } else {
            // The session ends with the tools of the tree.
            drop(running);
            server.wait_until(|seen| seen.iter().any(|request| request.method == "DELETE"));
        }
    }
}

/// A key is sent to its server, in the header that was named, and no text of the server repeats it.
#[tokio::test]
async fn the_key_of_a_server_is_sent_to_it_and_shown_nowhere() {
    let server = HttpToolServer::start("key");
    let error = Setting::elsewhere(&server.url()).try_start().await.map(drop).unwrap_err();
    assert_eq!(
        error,
        "server `test`: it refused the connection: HTTP 401 (it may need a key, `auth`, or a login): who are you?"
    );
    let setting = Setting::elsewhere(&server.url()).with_tools(&["header", "status"]).with_key(None);
    assert!(setting.server.allowance().starts_with("$NOTES_TOKEN http://127.0.0.1:"));
    let running = setting.start().await;
    assert_eq!(running.said("header", json!({ "text": "authorization" })).await, "Bearer [key]");
    let refused = running.call("status", json!({ "number": 500 })).await;
    assert_eq!(
        (refused.text.as_str(), refused.is_error),
        ("server `test`: error -32603: HTTP 500: it hurts [2J, says [key]", true)
    );
    // Nor do the headers of what is no answer.
    for (mood, why) in [
        (
            "moved",
            "it redirects to https://elsewhere.example/mcp?token=[key], which is not followed: write that as its `url`",
        ),
        ("page", "it answered with `text/html; token=[key]`, which is not the protocol"),
    ] {
        let server = HttpToolServer::start(mood);
        let error = Setting::elsewhere(&server.url()).with_key(None).try_start().await.map(drop).unwrap_err();
        assert_eq!(error, format!("server `test`: it refused the connection: {why}"));
    }
    // What a person allowed is not the value: an unset one is said before anything is sent.
    let mut setting = Setting::elsewhere(&server.url()).with_key(None);
    setting.permissions = ServerPermissions::default();
    let error = setting.try_start().await.map(drop).unwrap_err();
    assert_eq!(error, "server `test`: its key is not set: set NOTES_TOKEN");

    let server = HttpToolServer::start("plain");
    let setting = Setting::elsewhere(&server.url()).with_tools(&["header"]).with_key(Some("X-API-Key"));
    let running = setting.start().await;
    assert_eq!(running.said("header", json!({ "text": "x-api-key" })).await, "[key]");
    assert_eq!(running.said("header", json!({ "text": "authorization" })).await, "not sent");
}

/// P17: an agent without the host of a server does not use it, and no permission is implied.
#[tokio::test]
async fn p17_a_server_elsewhere_is_used_only_by_agents_that_have_its_host() {
    let server = HttpToolServer::start("plain");
    let setting = Setting::elsewhere(&server.url());
    let mut running = setting.start().await;
    running.rights = Rights::none();
    let refused = running.call("echo", json!({ "text": "so" })).await;
    let port = server.port();
    let said = format!(
        "`test__echo` was not called: server `test` may connect to `127.0.0.1:{port}`, and you may not"
    );
    assert_eq!((refused.text, refused.is_error), (said, true));
    let other = ToolServers::new(ATTEMPTS.into());
    other.prepare(ServerPermissions::default(), Vec::new());
    let error = other.tools(setting.discovery(setting.definition())).await.map(drop).unwrap_err().message;
    assert_eq!(error, "server `test` needs the user's permission: its file alone cannot start it");
}

/// Resolves every name to this machine.
struct Rebinding;

impl Outbound for Rebinding {
    fn resolve(&self, _: &str) -> Pending<io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec!["127.0.0.1".parse().unwrap()]) })
    }

    fn connect(&self, _: SocketAddr) -> Pending<io::Result<TcpStream>> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }

    fn is_own(&self, _: IpAddr) -> bool {
        false
    }
}

/// G26 for servers: a name that leads to this machine is not connected to, and a redirect is not followed.
#[tokio::test]
async fn g26_a_server_elsewhere_is_reached_at_its_own_public_address_alone() {
    let server = HttpToolServer::start("plain");
    let setting = Setting::elsewhere(&format!("https://tools.example.org:{}/mcp", server.port()));
    let servers = setting.servers().connecting(Arc::new(Rebinding));
    let error = servers.tools(setting.discovery(setting.definition())).await.map(drop).unwrap_err().message;
    assert!(error.contains("the name resolves to 127.0.0.1, a loopback address"), "{error}");
    assert!(server.seen().is_empty());

    let error = Setting::elsewhere(&HttpToolServer::start("moved").url()).try_start().await;
    assert_eq!(
        error.map(drop).unwrap_err(),
        "server `test`: it refused the connection: it redirects to https://elsewhere.example/mcp, which is not followed: write that as its `url`"
    );
    // Whatever a journal says, nothing is sent in the open to another machine.
    let mut setting = Setting::elsewhere(&server.url());
    let url = "http://192.0.2.1/mcp".to_owned();
    setting.server.address = ServerAddress::Http(HttpAddress { url, auth: None });
    let error = setting.try_start().await.map(drop).unwrap_err();
    assert!(error.contains("plain http to another machine"), "{error}");
}

/// G28 (over HTTP): what never becomes a server is refused in words, in bounded time.
#[tokio::test]
async fn g28_hosts_that_are_no_servers_are_refused() {
    for (mood, why) in [
        ("page", "it refused the connection: it answered with `text/html`, which is not the protocol"),
        ("broken", "it refused the connection: its answer has another form than the protocol"),
        ("silent", "it did not answer within 20 s"),
        ("endless", "it refused the connection: its stream has no events"),
    ] {
        let server = HttpToolServer::start(mood);
        let error = Setting::elsewhere(&server.url()).try_start().await.map(drop).unwrap_err();
        assert!(error.starts_with(&format!("server `test`: {why}")), "{mood}: {error}");
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Setting::elsewhere(&format!("http://{closed}/mcp")).try_start().await.map(drop).unwrap_err();
    assert!(error.starts_with("server `test`: it cannot be reached: Connection refused"), "{error}");
}

/// G28 (over HTTP): calls end typed, and what is lost is told from what was never sent.
#[tokio::test]
async fn g28_calls_of_a_server_elsewhere_end_typed() {
    let server = HttpToolServer::start("stream");
    let tools = ["echo", "long", "half", "cut", "forget", "status", "change", "moody"];
    let running = Setting::elsewhere(&server.url()).with_tools(&tools).start().await;
    let half = running.call("half", json!({})).await;
    assert_eq!(
        (half.text.as_str(), half.is_error),
        (
            "lost: server `test` did not answer this call, and what the call did is unknown: its response ended before the answer",
            true
        )
    );
    let cut = running.call("cut", json!({})).await;
    assert!(
        cut.is_error && cut.text.starts_with("lost: server `test` did not answer this call"),
        "{}",
        cut.text
    );
    let long = running.call("long", json!({ "number": 13_000_000 })).await;
    assert!(long.is_error && long.text.contains("its answer has more than 12582912 bytes"), "{}", long.text);
    let huge = running.call("long", json!({ "number": 40_000_000 })).await;
    assert!(
        huge.is_error && huge.text.contains("of the stream has more than 16777216 bytes"),
        "{}",
        huge.text
    );
    assert_eq!(running.said("long", json!({ "number": 3_000_000 })).await.len(), 3_000_000);
    let refused = running.call("status", json!({ "number": 429 })).await;
    assert!(refused.is_error && refused.text.contains("HTTP 429: it hurts"), "{}", refused.text);
    // A session that the server forgot is begun again, three times in all; the call had not reached it.
    for _ in 0..3 {
        assert_eq!(running.said("forget", json!({})).await, "forgotten");
        assert_eq!(running.said("echo", json!({ "text": "again" })).await, "again");
    }
    assert_eq!(running.said("forget", json!({})).await, "forgotten");
    let ended = running.call("echo", json!({ "text": "again" })).await;
    assert_eq!(
        (ended.text.as_str(), ended.is_error),
        ("server `test` ended, and is not started a 4th time", true)
    );

    // Changed descriptions, as of programs.
    let running = Setting::elsewhere(&server.url()).with_tools(&tools).start().await;
    assert_eq!(running.said("moody", json!({})).await, "did it");
    assert_eq!(running.said("change", json!({})).await, "changed");
    let refused = running.said("moody", json!({})).await;
    assert!(refused.contains("now describes this tool differently"), "{refused}");

    let plain = HttpToolServer::start("plain");
    let running = Setting::elsewhere(&plain.url()).with_tools(&["long"]).start().await;
    let long = running.call("long", json!({ "number": 40_000_000 })).await;
    assert!(long.is_error && long.text.contains("its answer has more than 12582912 bytes"), "{}", long.text);
}

/// A call that takes too long, or that nobody waits for any more, is cancelled at the server, and its response is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_over_http_that_is_given_up_is_cancelled_at_the_server() {
    for mood in ["stream", "newest"] {
        let server = HttpToolServer::start(mood);
        let mut setting = Setting::elsewhere(&server.url()).with_tools(&["wait", "echo"]);
        setting.server.timeout_ms = 300;
        let running = setting.start().await;
        let said = running.call("wait", json!({})).await;
        assert!(said.is_error && said.text.starts_with("timed out after 300 ms"), "{}", said.text);
        server.wait_until(|seen| {
            seen.iter().any(|request| request.was_closed && request.body["method"] == "tools/call")
        });
        // In the newest version the end of the response says it all.
        if mood == "stream" {
            server.wait_until(|seen| {
                seen.iter().any(|request| request.body["method"] == "notifications/cancelled")
            });
        }
        assert_eq!(running.said("echo", json!({ "text": "still" })).await, "still");
    }
}
