//! Boxes that are connected to the hosts of their rules: what commands reach, what they are told, and what is refused
//! before they start. The ways out are in the program of the attempts.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use spinney_drivers::commands::{BoxPermissions, CommandToolSpec, Commands};
use spinney_drivers::network::{
    CONNECTIONS_AT_ONCE_MAX, Connector, Outbound, ProxiedEnd, Proxy, ProxyLog, SystemOutbound,
};
use spinney_drivers::sandbox::BoxTierChoice;
use spinney_kernel::definition::{BoxSpec, CommandTemplate, HostRequests, Network};
use spinney_kernel::port::{Pending, Rights};
use spinney_kernel::primitives::CommandExit;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::boxes::{ATTEMPTS, in_scene, launcher, ordinary, tiers};
use crate::commands::{Shop, definition};

/// Every so many ways out are tried here; `make attempts` tries all.
const SAMPLE_STEP: &str = "4";
/// A public address at which nothing of these tests really is.
const GRANTED: &str = "93.184.216.34";

/// Every name has the granted address, which leads to one server.
struct OneServer(SocketAddr);

impl Outbound for OneServer {
    fn resolve(&self, _: &str) -> Pending<io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![GRANTED.parse().unwrap()]) })
    }

    fn connect(&self, to: SocketAddr) -> Pending<io::Result<TcpStream>> {
        assert_eq!(to.ip().to_string(), GRANTED);
        Box::pin(TcpStream::connect(self.0))
    }

    fn is_own(&self, _: IpAddr) -> bool {
        false
    }
}

fn rules(rules: &[&str]) -> Network {
    Network::hosts(rules.iter().map(|rule| rule.parse().unwrap()))
}

async fn server(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = client.read(&mut [0; 4_096]).await;
                let _ = client.write_all(answer).await;
            });
        }
    });
    address
}

async fn has_namespaces() -> bool {
    tiers(&launcher().await).contains(&BoxTierChoice::Namespaces)
}

fn ways(user: Option<u32>) {
    let said = in_scene(user, &["ways"], &[SAMPLE_STEP]);
    assert!(said.lines().filter(|line| line.starts_with("stopped: ")).count() >= 20, "{said}");
}

/// G26 (one agent, as root): nothing leads out of a box but the hosts that it was granted.
#[tokio::test]
async fn g26_nothing_else_is_reached_from_a_box_with_a_network() {
    if has_namespaces().await {
        ways(ordinary());
    }
}

/// What a shell sends to the proxy of its box, and what comes back.
fn sent(request: &str) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/61080; printf '{request}' >&3; cat <&3")
}

/// X6 (network): a command reaches what its agent was granted, and its model reads what was refused and why.
#[tokio::test]
async fn x6_a_command_reaches_granted_hosts_and_is_told_what_was_refused() {
    if !has_namespaces().await {
        return;
    }
    let server = server(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere").await;
    let commands = Commands::with_tier(ATTEMPTS.into(), BoxTierChoice::Best);
    let shop = Shop::with(commands.connecting(Arc::new(OneServer(server))));
    let get = |host: &str| sent(&format!("GET http://{host}/ HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n"));
    let run = async |line: String, network: &Network| {
        let mut attempt = shop.attempt(&json!({ "command": ["bash", "-c", line] }));
        attempt.rights = Rights::none().with_network(network.clone());
        shop.call(attempt).await
    };
    let network = rules(&["granted.test"]);
    let granted = run(get("granted.test"), &network).await;
    assert_eq!(granted.exit, Some(CommandExit::Code(0)), "{}", granted.text);
    assert!(granted.text.ends_with("here"), "{}", granted.text);
    let refused = run(get("evil.test"), &network).await;
    assert!(
        refused.text.ends_with("\nthe connection to evil.test:80 was refused: granted here is `granted.test`; do without it, or have a person grant `evil.test:80`"),
        "{}",
        refused.text
    );
    // One that may ask reads what to name. What it names and does not have is refused before it starts.
    let mut attempt = shop.attempt(&json!({ "command": ["bash", "-c", get("evil.test")] }));
    attempt.rights = Rights::none().with_network(network.clone()).with_host_requests(HostRequests::Ask);
    let refused = shop.call(attempt).await.text;
    assert!(
        refused.ends_with("\na person can allow them: call again with \"hosts\": [\"evil.test:80\"]"),
        "{refused}"
    );
    // One that has no host yet, too.
    let mut attempt = shop.attempt(&json!({ "command": ["bash", "-c", get("evil.test")] }));
    attempt.rights = Rights::none().with_host_requests(HostRequests::Ask);
    let refused = shop.call(attempt).await.text;
    assert!(refused.ends_with("call again with \"hosts\": [\"evil.test:80\"]"), "{refused}");
    let mut attempt = shop.attempt(&json!({ "command": "true", "hosts": ["granted.test", "evil.test:80"] }));
    attempt.rights = Rights::none().with_network(network.clone());
    let refused = shop.call(attempt).await;
    assert_eq!(refused.exit, Some(CommandExit::NotStarted));
    assert_eq!(
        refused.text,
        "not started: not granted here: `evil.test:80`; granted here is `granted.test`: do without `hosts`"
    );
    let mut attempt = shop.attempt(&json!({ "command": "true", "hosts": ["granted.test"] }));
    attempt.rights = Rights::none().with_network(network.clone());
    assert_eq!(shop.call(attempt).await.exit, Some(CommandExit::Code(0)));
    let names = "echo $HTTP_PROXY $https_proxy; echo ${NO_PROXY-none}";
    let with = run(names.to_owned(), &network).await;
    let proxy = "http://127.0.0.1:61080";
    assert_eq!(with.text, format!("exit code 0\n[stdout]\n{proxy} {proxy}\nlocalhost,127.0.0.1,::1"));
    // `localhost` is the machine where a port of it is granted.
    let local = run(names.to_owned(), &rules(&["localhost:3000"])).await;
    assert_eq!(local.text, format!("exit code 0\n[stdout]\n{proxy} {proxy}"));
    for without in [Network::Denied, Network::Any] {
        let without = run(format!("{names}; {}", get("granted.test")), &without).await;
        assert!(without.text.contains("[stdout]\n\nnone\n"), "{}", without.text);
        assert!(without.text.contains("Connection refused"), "{}", without.text);
    }
}

/// A tool of a tree file has no argument for hosts, so its agent is not told to use one.
#[tokio::test]
async fn x6_a_command_tool_is_refused_hosts_without_advice_that_it_cannot_follow() {
    if !has_namespaces().await {
        return;
    }
    let server = server(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere").await;
    let commands = Commands::with_tier(ATTEMPTS.into(), BoxTierChoice::Best);
    let shop = Shop::with(commands.connecting(Arc::new(OneServer(server))));
    let line = sent("GET http://evil.test/ HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n");
    let tool = shop.commands.command_tool(CommandToolSpec {
        description: String::new(),
        schema: r#"{"type":"object"}"#.to_owned(),
        command: CommandTemplate::new(&["bash", "-c", &line]).unwrap(),
        repeatable: false,
        timeout_ms: 60_000,
        kind: None,
    });
    let mut attempt = shop.attempt(&json!({}));
    attempt.rights = Rights::none().with_host_requests(HostRequests::Ask);
    let refused = tool.call(attempt).await.unwrap().text;
    assert!(refused.contains("the connection to evil.test:80 was refused"), "{refused}");
    assert!(!refused.contains("\"hosts\""), "{refused}");
}

/// Isolated or error: where a box cannot be connected to some hosts only, nothing of it starts.
#[tokio::test]
async fn x6_a_command_with_a_network_is_refused_without_namespaces() {
    if !tiers(&launcher().await).contains(&BoxTierChoice::WithoutNamespaces) {
        return;
    }
    let shop = Shop::new(BoxTierChoice::WithoutNamespaces);
    let mut attempt = shop.attempt(&json!({ "command": "true" }));
    attempt.rights = Rights::none().with_network(rules(&["granted.test"]));
    let refused = shop.call(attempt).await;
    assert_eq!(refused.exit, Some(CommandExit::NotStarted));
    assert_eq!(refused.text, "not started: granted hosts need namespaces, and this box should have none");
    shop.commands.prepare(BoxPermissions::default(), Vec::new());
    let mut tree = definition(&[("lead", BoxSpec::default())]);
    shop.commands.check(&tree).await.unwrap();
    for role in tree.roles.values_mut() {
        role.caps.network = rules(&["granted.test"]);
    }
    let refused = shop.commands.check(&tree).await.unwrap_err();
    assert!(
        refused.starts_with("commands of `lead` cannot be contained: granted hosts need namespaces"),
        "{refused}"
    );
    assert!(refused.ends_with("`fetch` works without it"), "{refused}");
    // A yes could not be kept either.
    for role in tree.roles.values_mut() {
        role.caps.network = Network::Denied;
        role.caps.host_requests = HostRequests::Ask;
    }
    let refused = shop.commands.check(&tree).await.unwrap_err();
    assert!(refused.contains("cannot be contained: granted hosts need namespaces"), "{refused}");
}

/// A proxy that accepts from a socket of this process.
async fn proxied<T>(
    network: Network,
    outbound: Arc<dyn Outbound>,
    work: impl AsyncFnOnce(SocketAddr) -> T,
) -> (T, ProxyLog) {
    let log = ProxyLog::default();
    let proxy = Proxy::new(Connector::new(network, outbound), log.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let done = proxy.serve_during(async { Ok(Some(listener)) }, work(address)).await;
    (done, log)
}

/// Each connection is counted in both directions, and a side that is closed leaves the other open.
#[tokio::test]
async fn a_tunnel_carries_both_ways_until_both_sides_are_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let answer = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        client.write_all(b"hello ").await.unwrap();
        let mut all = Vec::new();
        client.read_to_end(&mut all).await.unwrap();
        client.write_all(format!("got {}", all.len()).as_bytes()).await.unwrap();
    });
    let (said, log) = proxied(rules(&["granted.test:22"]), Arc::new(OneServer(server)), async |proxy| {
        let mut client = TcpStream::connect(proxy).await.unwrap();
        client.write_all(b"CONNECT granted.test:22 HTTP/1.0\r\n\r\n").await.unwrap();
        let mut head = [0; 39];
        client.read_exact(&mut head).await.unwrap();
        client.write_all(b"line\n").await.unwrap();
        client.write_all(&[b'x'; 299_995]).await.unwrap();
        client.shutdown().await.unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).await.unwrap();
        said
    })
    .await;
    answer.await.unwrap();
    assert_eq!(said, "hello got 300000");
    let (records, unkept) = log.records();
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((record.host.as_str(), record.port, unkept), ("granted.test", 22, 0));
    assert_eq!(record.address, Some(GRANTED.parse().unwrap()));
    assert_eq!((record.sent_bytes, record.received_bytes), (300_000, 16));
    assert_eq!(record.end, ProxiedEnd::Closed);
}

/// A hundred at once work; past the bound they wait until one ends.
#[tokio::test]
async fn connections_at_once_are_bounded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let reached = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&reached);
    let (release, _) = tokio::sync::broadcast::channel::<()>(1);
    let released = release.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let mut wait = released.subscribe();
            tokio::spawn(async move {
                client.write_all(b"1").await.unwrap();
                let _ = wait.recv().await;
            });
        }
    });
    let more = CONNECTIONS_AT_ONCE_MAX + 20;
    let ((), log) = proxied(rules(&["granted.test"]), Arc::new(OneServer(server)), async |proxy| {
        let mut clients = Vec::new();
        for _ in 0..more {
            let mut client = TcpStream::connect(proxy).await.unwrap();
            client.write_all(b"CONNECT granted.test:443 HTTP/1.0\r\n\r\n").await.unwrap();
            clients.push(client);
        }
        let mut answer = [0; 40];
        for client in &mut clients[..CONNECTIONS_AT_ONCE_MAX] {
            client.read_exact(&mut answer).await.unwrap();
        }
        assert_eq!(reached.load(Ordering::SeqCst), CONNECTIONS_AT_ONCE_MAX);
        let waiting = clients.split_off(CONNECTIONS_AT_ONCE_MAX);
        drop(clients);
        release.send(()).unwrap();
        for mut client in waiting {
            client.read_exact(&mut answer).await.unwrap();
        }
        assert_eq!(reached.load(Ordering::SeqCst), more);
    })
    .await;
    let (records, unkept) = log.records();
    assert_eq!(records.len() as u64 + unkept, more as u64);
}

/// The name is looked up once, and the address that was checked is the one that is connected to.
#[tokio::test]
async fn what_is_checked_is_what_is_connected_to() {
    let connector =
        Connector::new(rules(&["localhost:9", "127.0.0.1:9"]), Arc::new(SystemOutbound::default()));
    for (host, port) in [("127.0.0.1", 10), ("127.0.0.2", 9), ("localhost", 10), ("a.localhost", 9)] {
        let refused = connector.connect(&host.parse().unwrap(), port).await.unwrap_err();
        assert!(refused.is_ours() && refused.to_string().contains("granted here is"), "{refused}");
    }
    // Nothing listens there, so it was tried.
    for host in ["127.0.0.1", "localhost"] {
        let unreachable = connector.connect(&host.parse().unwrap(), 9).await.unwrap_err();
        assert!(!unreachable.is_ours(), "{unreachable}");
    }
    let any = Connector::new(Network::Any, Arc::new(SystemOutbound::default()));
    assert!(any.connect(&"127.0.0.1".parse().unwrap(), 80).await.unwrap_err().is_ours());
}
