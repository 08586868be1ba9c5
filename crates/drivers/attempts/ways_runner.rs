//! Tries the ways out of a box that is connected to some hosts, from outside: the proxy is the real one, and what it
//! connects to are servers of this program.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spinney_drivers::network::{Connector, Outbound, ProxiedEnd, Proxy, ProxyLog};
use spinney_drivers::sandbox::{
    BoxLauncher, BoxNetwork, BoxTierChoice, BoxedCommand, BoxedEnd, BoxedExit, Confinement, LocalhostMeaning,
};
use spinney_kernel::definition::Network;
use spinney_kernel::port::Pending;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::rows::STOPPED;
use crate::scene::SECRET;
use crate::ways::{WAYS, Way, WayStop};

/// The address at which the granted hosts are. At every other address is the server with the secret.
const GRANTED: &str = "93.184.216.34";

/// What is granted: most of it leads where it must not.
const RULES: [&str; 18] = [
    "granted.test",
    "*.wild.test",
    "loop.test",
    "private.test",
    "meta.test",
    "azure.test",
    "mapped.test",
    "nat64.test",
    "sixtofour.test",
    "ula.test",
    "linklocal.test",
    "zero.test",
    "cgnat.test",
    "multicast.test",
    "own.test",
    "mixed.test",
    "rebind.test",
    "unused.test",
];

/// Names and their addresses, at each lookup; the last is for all further ones.
const NAMES: [(&str, &[&[&str]]); 17] = [
    ("granted.test", &[&[GRANTED]]),
    ("a.wild.test", &[&[GRANTED]]),
    ("evil.test", &[&["93.184.216.99"]]),
    ("loop.test", &[&["127.0.0.1"]]),
    ("private.test", &[&["10.0.0.5", "192.168.0.1"]]),
    ("meta.test", &[&["169.254.169.254"]]),
    ("azure.test", &[&["168.63.129.16"]]),
    ("mapped.test", &[&["::ffff:127.0.0.1"]]),
    ("nat64.test", &[&["64:ff9b::7f00:1"]]),
    ("sixtofour.test", &[&["2002:7f00:1::1"]]),
    ("ula.test", &[&["fd12::1"]]),
    ("linklocal.test", &[&["fe80::1"]]),
    ("zero.test", &[&["0.0.0.0"]]),
    ("cgnat.test", &[&["100.64.0.1"]]),
    ("multicast.test", &[&["224.0.0.1"]]),
    ("mixed.test", &[&["10.0.0.5", GRANTED]]),
    ("rebind.test", &[&[GRANTED], &["127.0.0.1"]]),
];
const OWN: (&str, &str) = ("own.test", "93.184.216.77");

/// Leads to servers of this program, and counts the lookups.
struct TestNetwork {
    granted: SocketAddr,
    secret: SocketAddr,
    lookups: Mutex<BTreeMap<String, usize>>,
}

impl Outbound for TestNetwork {
    fn resolve(&self, name: &str) -> Pending<io::Result<Vec<IpAddr>>> {
        let mut lookups = self.lookups.lock().unwrap();
        let count = lookups.entry(name.to_owned()).or_default();
        let found = NAMES.iter().find(|(known, _)| *known == name).map(|(_, answers)| {
            answers[(*count).min(answers.len() - 1)].iter().map(|address| address.parse().unwrap()).collect()
        });
        *count += 1;
        let found = found.or_else(|| (name == OWN.0).then(|| vec![OWN.1.parse().unwrap()]));
        Box::pin(async move { found.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }

    fn connect(&self, to: SocketAddr) -> Pending<io::Result<TcpStream>> {
        let is_granted = to.ip().to_string() == GRANTED;
        let real = if is_granted { self.granted } else { self.secret };
        Box::pin(TcpStream::connect(real))
    }

    fn is_own(&self, address: IpAddr) -> bool {
        address.to_string() == OWN.1
    }
}

/// Tries every STEP-th way out and prints what stopped it. Fails if one was not stopped as its row says.
pub(crate) fn table(root: &Path, step: usize) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(all(root, step))
}

async fn all(root: &Path, step: usize) -> ExitCode {
    for folder in ["workspace", "home"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let _control = UnixListener::bind(root.join("home/control.sock")).unwrap();
    let abstract_name = format!("spinney-ways-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name).unwrap();
    let _named = UnixListener::bind_addr(&address).unwrap();
    let reached = Arc::new(AtomicUsize::new(0));
    let secret = serve(Arc::clone(&reached), |_| format!("HTTP/1.1 200 OK\r\n\r\n{SECRET}")).await;
    let granted = serve(Arc::default(), granted_answer).await;
    let network = Arc::new(TestNetwork { granted, secret, lookups: Mutex::default() });
    let launcher = BoxLauncher::new("/proc/self/exe".into()).await.unwrap();
    let own = std::env::current_exe().unwrap();
    let confinement = Confinement {
        tier: BoxTierChoice::Namespaces,
        read: vec![own.clone()],
        network: BoxNetwork::Proxied { localhost: LocalhostMeaning::Box },
        ..Confinement::new(root.join("workspace"))
    };
    let (mut made, mut wrong) = (0, 0);
    for way in WAYS.iter().step_by(step) {
        let words = [
            own.display().to_string(),
            "way".to_owned(),
            way.name.to_owned(),
            root.display().to_string(),
            secret.port().to_string(),
            abstract_name.clone(),
        ];
        let (end, log) = attempt(&launcher, &confinement, &network, &words).await;
        let said = String::from_utf8_lossy(end.stdout.head()).trim().to_owned();
        let damage = reached.swap(0, Ordering::SeqCst);
        let is_stopped = end.exit == BoxedExit::Exited(STOPPED)
            && said.contains(way.told)
            && damage == 0
            && is_logged(way, &log);
        made += 1;
        wrong += usize::from(!is_stopped);
        let mark = match () {
            () if !is_stopped => "NOT STOPPED AS EXPECTED",
            () if way.stop == WayStop::Nothing => "works",
            () => "stopped",
        };
        println!("{mark}: {} by {:?}: {said} {:?} {damage}", way.name, way.stop, end.exit);
        if !is_stopped {
            println!("    {} {:?}", String::from_utf8_lossy(end.stderr.head()).trim(), log.records());
        }
    }
    let lookups = network.lookups.lock().unwrap();
    let leaked = lookups.keys().filter(|name| name.contains("evil") || name.contains("onion")).count();
    println!(
        "{made} ways out, {wrong} not stopped as expected, {leaked} names looked up that are not granted"
    );
    ExitCode::from(u8::from(wrong + leaked > 0))
}

/// What the proxy said no to is in the log, with its reason.
fn is_logged(way: &Way, log: &ProxyLog) -> bool {
    let refused =
        log.records().0.iter().filter(|record| matches!(record.end, ProxiedEnd::Refused(_))).count();
    match way.stop {
        WayStop::Rule | WayStop::Address | WayStop::Request | WayStop::TlsName => refused == 1,
        _ => refused == 0,
    }
}

async fn attempt(
    launcher: &BoxLauncher,
    confinement: &Confinement,
    network: &Arc<TestNetwork>,
    words: &[String],
) -> (BoxedEnd, ProxyLog) {
    let command = BoxedCommand { timeout: Duration::from_secs(20), ..BoxedCommand::new(words) };
    let rules = Network::hosts(RULES.map(|rule| rule.parse().unwrap()));
    let log = ProxyLog::default();
    let outbound: Arc<dyn Outbound> = Arc::<TestNetwork>::clone(network);
    let proxy = Proxy::new(Connector::new(rules, outbound), log.clone());
    let mut run = launcher.start(confinement, &command).unwrap();
    let listener = run.take_network().unwrap().listener();
    let end = proxy.serve_during(listener, run.finish(&mut |_, _| ())).await.unwrap();
    (end, log)
}

/// A server that answers the first bytes of each connection and closes it.
async fn serve(reached: Arc<AtomicUsize>, answer: fn(&[u8]) -> String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            reached.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut bytes = vec![0; 4_096];
                let count = client.read(&mut bytes).await.unwrap_or(0);
                let _ = client.write_all(answer(&bytes[..count]).as_bytes()).await;
            });
        }
    });
    address
}

/// What of a request has come.
fn granted_answer(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request).into_owned();
    let header = |name: &str| {
        let line =
            text.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix(name).map(str::to_owned));
        line.map_or_else(|| "none".to_owned(), |value| value.trim().to_owned())
    };
    if text.starts_with("GET /redirect ") {
        return "HTTP/1.1 302 Found\r\nLocation: http://evil.test/\r\nContent-Length: 0\r\n\r\n".to_owned();
    }
    let raw: String = request.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let line = text.lines().next().unwrap_or_default();
    let line = if request.first() == Some(&22) { "" } else { line };
    format!(
        "HTTP/1.1 200 OK\r\n\r\nhost={} line={line} upgrade={} proxy={} raw={raw}",
        header("host:"),
        header("upgrade:"),
        header("proxy-authorization:")
    )
}
