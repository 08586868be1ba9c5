//! `fetch` as a model uses it, against a server of these tests.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use spinney_drivers::fetch::Fetch;
use spinney_drivers::network::Outbound;
use spinney_kernel::definition::{HostRequests, Network, OnLost};
use spinney_kernel::port::tool::{ToolAnswer, ToolAttempt};
use spinney_kernel::port::{ConnectionLog, ConnectionSink, Pending, Rights};
use spinney_kernel::primitives::{Connection, ConnectionEnd, PartKind, Time};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::scene::tool_attempt;

/// Names have loopback's address, whatever they are.
struct Loopback;

impl Outbound for Loopback {
    fn resolve(&self, _: &str) -> Pending<io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec!["127.0.0.1".parse().unwrap()]) })
    }

    fn connect(&self, to: SocketAddr) -> Pending<io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(to))
    }

    fn is_own(&self, _: IpAddr) -> bool {
        false
    }
}

struct Site {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut bytes = vec![0; 8_192];
                let count = client.read(&mut bytes).await.unwrap();
                let request = String::from_utf8(bytes[..count].to_vec()).unwrap();
                let path = request.split(' ').nth(1).unwrap().to_owned();
                kept.lock().unwrap().push(request);
                let _ = client.write_all(&answer(&path, port)).await;
            }
        });
        Self { port, requests }
    }

    async fn fetch(&self, rules: &[&str], args: Value) -> ToolAnswer {
        let port = self.port.to_string();
        let rules = rules.iter().map(|rule| rule.replace("PORT", &port).parse().unwrap());
        let mut attempt: ToolAttempt = tool_attempt(&args.to_string().replace("PORT", &port));
        attempt.rights = Rights::none().with_network(Network::hosts(rules));
        Fetch::connecting(Arc::new(Loopback)).tool().call(attempt).await.unwrap()
    }

    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn answer(path: &str, port: u16) -> Vec<u8> {
    let (head, body): (String, &[u8]) = match path {
        "/page" => {
            ("200 OK\r\nContent-Type: text/html".into(), b"<h1>Oaks</h1><p>See <a href=/more>more</a>")
        }
        "/missing" => ("404 Not Found\r\nContent-Type: text/plain".into(), b"no such page"),
        "/image" => ("200 OK\r\nContent-Type: image/png".into(), PNG),
        "/no-image" => ("200 OK\r\nContent-Type: image/png".into(), b"\x89PNG"),
        "/other-image" => ("200 OK\r\nContent-Type: image/jpeg".into(), PNG),
        "/missing-image" => ("404 Not Found\r\nContent-Type: image/png".into(), PNG),
        "/pdf" => ("200 OK\r\nContent-Type: application/pdf".into(), b"%PDF-1.7\0"),
        "/zipped" => ("200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip".into(), b"\x1f\x8b"),
        "/long" => ("200 OK\r\nContent-Type: text/plain".into(), &[b'x'; 5_000]),
        "/moved" => ("301 Moved\r\nLocation: /page".into(), b""),
        "/around" => ("302 Found\r\nLocation: /around".into(), b""),
        "/out" => (format!("302 Found\r\nLocation: http://evil.test:{port}/page"), b""),
        "/file" => ("302 Found\r\nLocation: file:///etc/passwd".into(), b""),
        "/user" => (format!("302 Found\r\nLocation: http://u:p@127.0.0.1:{port}/page"), b""),
        _ => ("500 Oops".into(), b""),
    };
    let head = format!(
        "HTTP/1.1 {head}\r\nSet-Cookie: a=b\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// As much of one as is looked at: its size, and its end.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01rest\0\0\0\0IEND\xae\x42\x60\x82";
const HERE: &[&str] = &["127.0.0.1:PORT"];

#[tokio::test]
async fn a_page_is_fetched_as_text_and_nothing_of_ours_goes_along() {
    let site = Site::new().await;
    let page = site.fetch(HERE, json!({ "url": "http://127.0.0.1:PORT/moved#there" })).await;
    let at = format!("http://127.0.0.1:{}", site.port);
    assert_eq!(page.text, format!("200 OK from {at}/page\n\n# Oaks\n\nSee more ({at}/more)"));
    assert!(!page.is_error);
    let last = site.requests.lock().unwrap().last().unwrap().to_ascii_lowercase();
    let mut headers: Vec<&str> =
        last.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0)).collect();
    headers.sort_unstable();
    assert_eq!(headers, ["accept", "accept-encoding", "host", "user-agent"]);
    assert!(
        last.contains("\r\naccept-encoding: identity\r\n") && last.contains("\r\nuser-agent: spinney\r\n")
    );
    assert_eq!(Fetch::default().tool().spec().lost, OnLost::Repeatable);
}

#[tokio::test]
async fn what_is_not_a_page_is_an_error_that_says_what_it_is() {
    let site = Site::new().await;
    for (args, said) in [
        (json!({ "url": "http://127.0.0.1:PORT/missing" }), "404 Not Found from"),
        (json!({ "url": "http://127.0.0.1:PORT/missing" }), "no such page"),
        (json!({ "url": "http://127.0.0.1:PORT/no-image" }), "its type is image/png, and it has 4 bytes"),
        (
            json!({ "url": "http://127.0.0.1:PORT/other-image" }),
            "its type is image/jpeg, and it has 12 bytes",
        ),
        (json!({ "url": "http://127.0.0.1:PORT/missing-image" }), "its type is image/png"),
        (json!({ "url": "http://127.0.0.1:PORT/image", "max_bytes": 9 }), "more than 9 bytes"),
        (
            json!({ "url": "http://127.0.0.1:PORT/pdf" }),
            "application/pdf, and it has 9 bytes, of which none are kept",
        ),
        (json!({ "url": "http://127.0.0.1:PORT/zipped" }), "compressed (gzip)"),
        (json!({ "url": "http://127.0.0.1:PORT/around" }), "redirects more than 5 times"),
        (json!({ "url": "http://127.0.0.1:PORT/", "max_bytes": 0 }), "`max_bytes` is out of bounds"),
        (json!({ "url": "http://127.0.0.1:PORT/", "method": "POST" }), "unknown field"),
        (json!({ "url": "127.0.0.1" }), "is not an address"),
        (json!({ "url": "file:///etc/passwd" }), "only `http` and `https` are"),
        (json!({ "url": "http://user:key@127.0.0.1:PORT/" }), "a user or a password"),
    ] {
        let failed = site.fetch(HERE, args.clone()).await;
        assert!(failed.is_error && failed.text.contains(said), "{args}: {}", failed.text);
    }
    let cut = site.fetch(HERE, json!({ "url": "http://127.0.0.1:PORT/long", "max_bytes": 100 })).await;
    assert!(cut.text.contains("cut after 100 bytes") && cut.text.ends_with(&"x".repeat(100)), "{}", cut.text);
    assert!(!cut.text.contains(&"x".repeat(101)));
}

#[tokio::test]
async fn an_image_is_passed_on_to_the_model() {
    let site = Site::new().await;
    let answer = site.fetch(HERE, json!({ "url": "http://127.0.0.1:PORT/image" })).await;
    let at = format!("200 OK from http://127.0.0.1:{}/image", site.port);
    assert_eq!((answer.is_error, answer.text), (false, at));
    let [image] = answer.parts.as_slice() else { panic!("{:?}", answer.parts) };
    assert_eq!(
        (image.kind, image.media.as_str(), image.bytes.as_slice()),
        (PartKind::Image, "image/png", PNG)
    );
}

/// Keeps what the journal would get.
#[derive(Default)]
struct Kept(Mutex<Vec<Connection>>);

impl ConnectionSink for Kept {
    fn now(&self) -> Time {
        Time(0)
    }

    fn record(&self, connection: Connection) {
        self.0.lock().unwrap().push(connection);
    }
}

/// G26 (journal): a connection has the bytes of the request and of the answer's body.
#[tokio::test]
async fn g26_bytes_of_a_fetch_are_counted_in_both_directions() {
    let site = Site::new().await;
    let kept = Arc::new(Kept::default());
    let url = format!("http://127.0.0.1:{}/long?a=b", site.port);
    let mut attempt: ToolAttempt = tool_attempt(&json!({ "url": url }).to_string());
    let rule = format!("127.0.0.1:{}", site.port).parse().unwrap();
    attempt.rights = Rights::none().with_network(Network::hosts([rule]));
    attempt.connections = ConnectionLog::new(Arc::clone(&kept) as Arc<dyn ConnectionSink>);
    let _ = Fetch::connecting(Arc::new(Loopback)).tool().call(attempt).await.unwrap();
    let sent = site.requests.lock().unwrap()[0].len() as u64;
    let connections = kept.0.lock().unwrap();
    assert_eq!((connections[0].sent_bytes, connections[0].end), (sent, ConnectionEnd::Closed));
}

/// G26 (journal): a connection that was not made has no address and no bytes.
#[tokio::test]
async fn g26_a_host_that_cannot_be_reached_got_nothing() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let kept = Arc::new(Kept::default());
    let url = format!("http://127.0.0.1:{port}/");
    let mut attempt: ToolAttempt = tool_attempt(&json!({ "url": url }).to_string());
    attempt.rights =
        Rights::none().with_network(Network::hosts([format!("127.0.0.1:{port}").parse().unwrap()]));
    attempt.connections = ConnectionLog::new(Arc::clone(&kept) as Arc<dyn ConnectionSink>);
    let answer = Fetch::connecting(Arc::new(Loopback)).tool().call(attempt).await.unwrap();
    assert!(answer.is_error, "{}", answer.text);
    let connections = kept.0.lock().unwrap();
    assert_eq!((connections[0].address, connections[0].sent_bytes), (None, 0));
    assert!(matches!(connections[0].end, ConnectionEnd::Refused(_)), "{:?}", connections[0].end);
}

/// G26 (asking): an agent that may ask reads how; one that may not is not told to.
#[tokio::test]
async fn g26_a_refused_redirect_says_how_to_ask() {
    let site = Site::new().await;
    for (requests, says) in [(HostRequests::Ask, true), (HostRequests::Refused, false)] {
        let mut attempt: ToolAttempt =
            tool_attempt(&json!({ "url": format!("http://127.0.0.1:{}/out", site.port) }).to_string());
        let rule = format!("127.0.0.1:{}", site.port).parse().unwrap();
        attempt.rights = Rights::none().with_network(Network::hosts([rule])).with_host_requests(requests);
        let refused = Fetch::connecting(Arc::new(Loopback)).tool().call(attempt).await.unwrap();
        assert!(refused.is_error && refused.text.contains("the connection to evil.test"), "{}", refused.text);
        assert_eq!(refused.text.ends_with("fetch an address of that host itself"), says, "{}", refused.text);
    }
}

/// X6 (network): nothing is fetched from a host that was not granted, also not by a redirect or by a name that leads to an
/// address of this machine.
#[tokio::test]
async fn x6_only_granted_hosts_are_fetched_from() {
    let site = Site::new().await;
    for (rules, url, said, requests) in [
        (&[][..], "http://127.0.0.1:PORT/page", "granted here is no host", 0),
        (&["127.0.0.1:9"], "http://127.0.0.1:PORT/page", "granted here is `127.0.0.1:9`", 0),
        (&["127.0.0.1"], "http://127.0.0.1:PORT/page", "granted here is `127.0.0.1`", 0),
        (&["127.0.0.2:PORT"], "http://127.0.0.1:PORT/page", "granted here is", 0),
        (&["name.test:PORT"], "http://name.test:PORT/page", "resolves to 127.0.0.1, a loopback address", 0),
        (&["name.test:PORT"], "http://2130706433:PORT/page", "granted here is", 0),
        (&["name.test:PORT"], "http://name.test.:PORT/page", "is not a valid host", 0),
        (HERE, "http://127.0.0.1:PORT/out", "the connection to evil.test", 1),
        (&["127.0.0.1:PORT", "evil.test"], "http://127.0.0.1:PORT/out", "the connection to evil.test", 1),
        (HERE, "http://127.0.0.1:PORT/file", "`file` is not fetched", 1),
        (HERE, "http://127.0.0.1:PORT/user", "a user or a password", 1),
    ] {
        let before = site.count();
        let refused = site.fetch(rules, json!({ "url": url })).await;
        assert!(refused.is_error && refused.text.contains(said), "{url}: {}", refused.text);
        assert_eq!(site.count() - before, requests, "{url}");
    }
    // A rule that names the address grants it, also through a name.
    let named = site
        .fetch(&["name.test:PORT", "127.0.0.1:PORT"], json!({ "url": "http://name.test:PORT/page" }))
        .await;
    assert!(!named.is_error, "{}", named.text);
}
