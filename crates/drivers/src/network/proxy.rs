//! The proxy of one call: every connection of its box passes through here. It speaks `CONNECT` and plain HTTP/1.1, one
//! request for each connection, and answers what it refuses with the reason.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::time::Duration;

use spinney_kernel::primitives::RemoteHost;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::connect::Connector;
use super::head::{Head, parse, read_head};
use super::log::{OpenConnection, ProxyLog};
use super::refusal::ConnectRefusal;
use super::relay::{copy, copy_exactly, write};
use super::tls_name::{FIRST_BYTES_MAX, FirstBytes};

/// Connections of one call at the same time; others wait until one ends.
pub const CONNECTIONS_AT_ONCE_MAX: usize = 256;
/// How long a client may take to say what it wants, and then to show what it speaks.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);
/// After a refusal a client may still be writing; closing at once would take the reason from it.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
const DRAIN_BYTES_MAX: usize = 256 << 10;
/// When this process has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const TLS_UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Lets a box connect to what its rules grant.
#[derive(Clone, Debug)]
pub struct Proxy {
    connector: Connector,
    log: ProxyLog,
}

impl Proxy {
    #[must_use]
    pub const fn new(connector: Connector, log: ProxyLog) -> Self {
        Self { connector, log }
    }

    /// Does some work, and serves everything that connects to a socket meanwhile. When the work has ended, every
    /// connection has ended and is in the log. A socket that never comes is like one to which nothing connects.
    pub async fn serve_during<T>(
        &self,
        listener: impl Future<Output = io::Result<Option<TcpListener>>>,
        work: impl Future<Output = T>,
    ) -> T {
        let mut connections = JoinSet::new();
        let done = {
            let serve = async {
                match listener.await {
                    Ok(Some(listener)) => self.accept_all(&listener, &mut connections).await,
                    Ok(None) | Err(_) => pending().await,
                }
            };
            tokio::select! {
                done = work => done,
                never = serve => match never {},
            }
        };
        connections.shutdown().await;
        done
    }

    async fn accept_all(&self, listener: &TcpListener, connections: &mut JoinSet<()>) -> Infallible {
        loop {
            tokio::select! {
                accepted = listener.accept(), if connections.len() < CONNECTIONS_AT_ONCE_MAX => match accepted {
                    Ok((client, _)) => {
                        // Without it, small messages are only slower.
                        let _ = client.set_nodelay(true);
                        let proxy = self.clone();
                        connections.spawn(async move { proxy.serve_connection(client).await });
                    }
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }

    /// Serves one connection to its end.
    pub async fn serve_connection<S: AsyncRead + AsyncWrite + Unpin>(&self, mut client: S) {
        let head = match timeout(HEAD_TIMEOUT, read_head(&mut client)).await {
            // It was given up, or says nothing.
            Err(_) | Ok(Err(_)) => return,
            Ok(Ok(head)) => head,
        };
        let parsed = head.and_then(|(head, rest)| Ok((parse(&head)?, rest)));
        match parsed {
            Err(bad) => {
                let mut open = self.log.open(String::new(), 0);
                let refusal = ConnectRefusal::Request { problem: bad.problem };
                let text = refusal.to_string();
                open.refuse(refusal);
                answer(&mut client, bad.status, &text).await;
            }
            Ok((Head::Tunnel { host, port }, rest)) => self.tunnel(&mut client, host, port, rest).await,
            Ok((Head::Plain { host, port, request, body_bytes }, rest)) => {
                let Some((mut open, mut server)) = self.open(&mut client, &host, port).await else { return };
                let exchanged = exchange(&mut client, &mut server, &request, (rest, body_bytes), &open).await;
                open.close();
                if let Err(error) = exchanged {
                    open.note(host, port, &error);
                }
                drain(&mut client).await;
            }
        }
    }

    /// Connects, or says why not.
    async fn open<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        client: &mut S,
        host: &RemoteHost,
        port: u16,
    ) -> Option<(OpenConnection, TcpStream)> {
        let mut open = self.log.open(host.to_string(), port);
        match self.connector.connect(host, port).await {
            Ok(connected) => {
                open.address = Some(connected.address);
                Some((open, connected.stream))
            }
            Err(refusal) => {
                let status = if refusal.is_ours() { "403 Not granted" } else { "502 Bad Gateway" };
                let text = refusal.to_string();
                open.refuse(refusal);
                answer(client, status, &text).await;
                None
            }
        }
    }

    async fn tunnel<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        client: &mut S,
        host: RemoteHost,
        port: u16,
        first: Vec<u8>,
    ) {
        let Some((mut open, mut server)) = self.open(client, &host, port).await else { return };
        if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_err() {
            return;
        }
        let bytes = std::sync::Arc::clone(&open.bytes);
        let refused = {
            let (mut from_client, mut to_client) = tokio::io::split(&mut *client);
            let (mut from_server, mut to_server) = server.split();
            let down = copy(&mut from_server, &mut to_client, &bytes.received);
            let up = async {
                let first = match first_bytes(&mut from_client, first, &host).await? {
                    Ok(first) => first,
                    Err(problem) => return Ok(Some(problem)),
                };
                write(&mut to_server, &first, &bytes.sent).await?;
                drop(first);
                copy(&mut from_client, &mut to_server, &bytes.sent).await.map(|()| None)
            };
            tokio::pin!(up, down);
            // A side that is closed does not close the other, but a broken one does.
            tokio::select! {
                up = &mut up => match up {
                    Ok(None) => { let _ = down.await; None }
                    Ok(Some(problem)) => Some(problem),
                    Err(_) => None,
                },
                down = &mut down => match down {
                    Ok(()) => up.await.unwrap_or(None),
                    Err(_) => None,
                },
            }
        };
        open.close();
        if let Some(problem) = refused {
            open.refuse(ConnectRefusal::TlsName { host, port, problem });
            // It has its answer to `CONNECT` and speaks TLS now.
            let _ = client.write_all(&TLS_UNRECOGNIZED_NAME).await;
            let _ = client.shutdown().await;
            drain(client).await;
        }
    }
}

impl OpenConnection {
    fn note(&mut self, host: RemoteHost, port: u16, error: &io::Error) {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            self.refuse(ConnectRefusal::Unreachable { host, port, problem: "it was broken off".to_owned() });
        }
    }
}

/// The first bytes of a tunnel, once it is known what they are; or why it is closed.
async fn first_bytes(
    client: &mut (impl AsyncRead + Unpin),
    mut first: Vec<u8>,
    host: &RemoteHost,
) -> io::Result<Result<Vec<u8>, String>> {
    let mut buffer = [0; 4_096];
    loop {
        match FirstBytes::new(&first) {
            FirstBytes::Incomplete => {}
            FirstBytes::Other => return Ok(Ok(first)),
            FirstBytes::PlainHttp => {
                let problem = "HTTP that is not encrypted is not spoken in a tunnel, where its host is not checked: send it to the proxy itself";
                return Ok(Err(problem.to_owned()));
            }
            FirstBytes::ProxyPrefix => {
                let problem =
                    "the PROXY protocol is not spoken in a tunnel: what follows it may be for another host";
                return Ok(Err(problem.to_owned()));
            }
            FirstBytes::Broken(problem) => return Ok(Err(problem.to_owned())),
            FirstBytes::TlsHello { name } => {
                return Ok(match (name, host) {
                    (Some(name), host) if name == *host => Ok(first),
                    // Clients do not send addresses as names.
                    (None, RemoteHost::Address(_)) => Ok(first),
                    (Some(name), _) => Err(format!("its TLS asks for `{name}`")),
                    (None, _) => {
                        Err("its TLS names no host, which only an address that is granted needs not"
                            .to_owned())
                    }
                });
            }
        }
        // A server may speak first, so a client may wait for as long as it likes before it begins.
        let read = client.read(&mut buffer);
        let read = if first.is_empty() {
            read.await?
        } else {
            timeout(HEAD_TIMEOUT, read).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??
        };
        if read == 0 {
            // Nothing follows what has come: a line without its end is not a request, and half a hello asks for nothing.
            return Ok(Ok(first));
        }
        first.extend_from_slice(&buffer[..read]);
        if first.len() > 2 * FIRST_BYTES_MAX {
            return Ok(Err("its TLS hello is too long".to_owned()));
        }
    }
}

/// One request and its answer. Its connection ends with it, so what a client sends after it goes nowhere.
async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    client: &mut S,
    server: &mut TcpStream,
    request: &[u8],
    (mut rest, body_bytes): (Vec<u8>, u64),
    open: &OpenConnection,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = tokio::io::split(&mut *client);
    let (mut from_server, mut to_server) = server.split();
    let counts = &open.bytes;
    let up = async {
        write(&mut to_server, request, &counts.sent).await?;
        rest.truncate(usize::try_from(body_bytes).unwrap_or(usize::MAX));
        write(&mut to_server, &rest, &counts.sent).await?;
        let left = body_bytes - rest.len() as u64;
        copy_exactly(&mut from_client, &mut to_server, left, &counts.sent).await
    };
    let down = copy(&mut from_server, &mut to_client, &counts.received);
    tokio::pin!(up, down);
    tokio::select! {
        // A server may answer before it has read everything.
        answered = &mut down => return answered,
        sent = &mut up => sent?,
    }
    down.await
}

/// Says why a connection was refused. The refusal is recorded before: a client that has read this may end its box.
async fn answer<S: AsyncRead + AsyncWrite + Unpin>(client: &mut S, status: &str, refusal: &str) {
    let text = format!("{refusal}\n");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    if client.write_all(answer.as_bytes()).await.is_ok() && client.shutdown().await.is_ok() {
        drain(client).await;
    }
}

/// Reads what a client still sends, within bounds.
async fn drain(client: &mut (impl AsyncRead + Unpin)) {
    let read = async {
        let (mut buffer, mut left) = ([0; 4_096], DRAIN_BYTES_MAX);
        while let Ok(count @ 1..) = client.read(&mut buffer).await {
            left = left.saturating_sub(count);
            if left == 0 {
                return;
            }
        }
    };
    let _ = timeout(DRAIN_TIMEOUT, read).await;
}
