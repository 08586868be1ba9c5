//! `cargo bench -p spinney-drivers --bench network`: a download by a command in a box, through the proxy of its box, against
//! the same download through a plain proxy in the same process, and what a hundred downloads at once take of memory. Times
//! alone say little on a machine that does other things too, so nothing here fails on a time.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream as Client};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use serde_json::json;
use spinney_drivers::commands::{BoxPermissions, Commands};
use spinney_drivers::network::Outbound;
use spinney_drivers::sandbox::{BoxTierChoice, guard_a_box};
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::context::Origin;
use spinney_kernel::definition::Network;
use spinney_kernel::port::tool::ToolAttempt;
use spinney_kernel::port::{AgentFolder, FolderAccess, Pending, Rights};
use spinney_kernel::primitives::{CallId, CommandExit, TreeId};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

const ROUNDS: usize = 15;
/// Of the throughput of a plain proxy.
const BOUND: f64 = 0.6;
const DOWNLOAD_BYTES: usize = 256 << 20;
/// Downloads at once, and how much each is.
const AT_ONCE: usize = 100;
const EACH_BYTES: usize = 4 << 20;
/// What a hundred connections may add to our memory: two small buffers each, and what the system calls for.
const MEMORY_BOUND_BYTES: u64 = 32 << 20;
/// Where the proxy of every box is.
const BOXES_PROXY: &str = "127.0.0.1:61080";
const HOST: &str = "granted.test";
/// A public address at which nothing of this bench really is.
const ADDRESS: &str = "93.184.216.34";

fn main() -> ExitCode {
    if let Some(exit) = guard_a_box() {
        return exit;
    }
    let words: Vec<String> = std::env::args().collect();
    // `cargo test --benches` only wants to know that it starts.
    if words.iter().any(|word| word == "--test") {
        return ExitCode::SUCCESS;
    }
    if let [_, mode, proxy, count, bytes] = &words[..]
        && mode == "client"
    {
        client(proxy, count.parse().unwrap(), bytes.parse().unwrap());
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let site = runtime.block_on(site());
    let plain = runtime.block_on(plain_proxy(site)).to_string();
    let shop = Shop::new(site);
    let mut times: [Vec<f64>; 2] = Default::default();
    for _ in 0..ROUNDS {
        times[0].push(outside(&plain, 1, DOWNLOAD_BYTES));
        times[1].push(runtime.block_on(shop.downloads(1, DOWNLOAD_BYTES)));
    }
    let [plain_took, boxed_took] = times.map(median);
    let speed = |took: f64| DOWNLOAD_BYTES as f64 / (1 << 20) as f64 / (took / 1e3);
    let ratio = plain_took / boxed_took;
    let verdict = if ratio >= BOUND { "" } else { " MISSED" };
    println!("{:<28} {:>7.0} MiB/s", "a plain proxy", speed(plain_took));
    println!("{:<28} {:>7.0} MiB/s {ratio:>5.2}x (at least {BOUND}x){verdict}", "a box's", speed(boxed_took));
    let before = resident_bytes();
    let took = runtime.block_on(shop.downloads(AT_ONCE, EACH_BYTES));
    println!("{:<28} {took:>7.0} ms", format!("{AT_ONCE} downloads at once"));
    let grown = resident_bytes().saturating_sub(before);
    let verdict = if grown <= MEMORY_BOUND_BYTES { "" } else { " MISSED" };
    println!(
        "{:<28} {:>7} KiB (at most {} KiB){verdict}",
        "memory added",
        grown >> 10,
        MEMORY_BOUND_BYTES >> 10
    );
    ExitCode::SUCCESS
}

/// The most memory that this process ever had.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
}

/// Downloads through a proxy, this many at once, and prints how many milliseconds that took.
fn client(proxy: &str, count: usize, bytes: usize) {
    let start = Instant::now();
    let all: Vec<_> = (0..count).map(|_| (proxy.to_owned(), bytes)).collect();
    let threads: Vec<_> =
        all.into_iter().map(|(proxy, bytes)| thread::spawn(move || download(&proxy, bytes))).collect();
    for thread in threads {
        thread.join().unwrap();
    }
    println!("{}", start.elapsed().as_secs_f64() * 1e3);
}

fn download(proxy: &str, bytes: usize) {
    let mut proxy = Client::connect(proxy).unwrap();
    let request = format!("GET http://{HOST}/{bytes} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
    proxy.write_all(request.as_bytes()).unwrap();
    let mut buffer = vec![0; 64 << 10];
    let mut read = 0;
    loop {
        match proxy.read(&mut buffer).unwrap() {
            0 => break,
            count => read += count,
        }
    }
    assert!(read > bytes, "{read} of {bytes}");
}

fn outside(proxy: &str, count: usize, bytes: usize) -> f64 {
    let mut command = Command::new("/proc/self/exe");
    command.args(["client", proxy, &count.to_string(), &bytes.to_string()]).stdin(Stdio::null());
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap().trim().parse().unwrap()
}

/// Serves as many bytes as the path of a request says.
async fn site() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(serve(client));
        }
    });
    address
}

async fn serve(mut client: TcpStream) -> io::Result<()> {
    let mut head = vec![0; 4_096];
    let count = client.read(&mut head).await?;
    let head = String::from_utf8_lossy(&head[..count]).into_owned();
    let bytes: usize = head.split_whitespace().nth(1).unwrap().trim_start_matches('/').parse().unwrap();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n");
    client.write_all(answer.as_bytes()).await?;
    let part = vec![b'x'; 64 << 10];
    let mut left = bytes;
    while left > 0 {
        let count = left.min(part.len());
        client.write_all(&part[..count]).await?;
        left -= count;
    }
    client.shutdown().await
}

/// The least that a proxy does: it reads a head, asks for the path of it, and copies.
async fn plain_proxy(site: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = vec![0; 4_096];
                let count = client.read(&mut head).await?;
                let head = String::from_utf8_lossy(&head[..count]).replacen(&format!("http://{HOST}"), "", 1);
                let mut server = TcpStream::connect(site).await?;
                server.write_all(head.as_bytes()).await?;
                copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    address
}

/// Every name leads to the site.
struct OneServer(SocketAddr);

impl Outbound for OneServer {
    fn resolve(&self, _: &str) -> Pending<io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![ADDRESS.parse().unwrap()]) })
    }

    fn connect(&self, _: SocketAddr) -> Pending<io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(self.0))
    }

    fn is_own(&self, _: IpAddr) -> bool {
        false
    }
}

struct Shop {
    home: TempDir,
    commands: Commands,
}

impl Shop {
    fn new(site: SocketAddr) -> Self {
        let commands = Commands::with_tier("/proc/self/exe".into(), BoxTierChoice::Namespaces);
        let commands = commands.connecting(Arc::new(OneServer(site)));
        commands.prepare(BoxPermissions::default(), Vec::new());
        Self { home: TempDir::new().unwrap(), commands }
    }

    /// What the client says that its downloads took.
    async fn downloads(&self, count: usize, bytes: usize) -> f64 {
        let path = vec!["lead".parse().unwrap()].into();
        let (tree, role) = (TreeId::new([7; 16]), "lead".parse().unwrap());
        let origin = Arc::new(Origin { tree, path, role, goal: "Nothing.".into() });
        let ourselves = std::env::current_exe().unwrap();
        let args =
            json!({ "command": [ourselves, "client", BOXES_PROXY, count.to_string(), bytes.to_string()] });
        let (name, args) = (Commands::tool_name(), args.to_string());
        let mut attempt = ToolAttempt::new(Arc::clone(&origin), CallId(1), String::new(), name, args);
        attempt.workspace = Some(AgentFolder::new(Workspaces::root(self.home.path()).into(), origin));
        attempt.rights = Rights::none()
            .with_network(Network::hosts([HOST.parse().unwrap()]))
            .with_folder(ourselves.parent().unwrap(), FolderAccess::Read);
        let answer = self.commands.tool().call(attempt).await.unwrap();
        assert_eq!(answer.exit, Some(CommandExit::Code(0)), "{}", answer.text);
        answer.text.lines().last().unwrap().trim().parse().unwrap()
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
