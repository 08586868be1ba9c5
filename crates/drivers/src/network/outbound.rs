//! What resolves names and opens connections. Tests have one that leads to servers of their own; programs have the
//! system's.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use spinney_kernel::port::Pending;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Names that are resolved at the same time; each takes a thread of its own. Others wait.
const RESOLVING_MAX: usize = 16;
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The way to the network. It decides nothing: [`Connector`](super::Connector) asks for a name once and for a connection
/// to an address that it has checked.
pub trait Outbound: Send + Sync {
    /// The addresses of a name, within a bounded time.
    fn resolve(&self, name: &str) -> Pending<io::Result<Vec<IpAddr>>>;

    /// A connection to this very address, within a bounded time.
    fn connect(&self, to: SocketAddr) -> Pending<io::Result<TcpStream>>;

    /// Whether an address is one of this machine's own. What listens there may trust it.
    fn is_own(&self, address: IpAddr) -> bool;
}

/// The system's resolver and its connections.
#[derive(Clone, Debug)]
pub struct SystemOutbound {
    resolving: Arc<Semaphore>,
}

impl Default for SystemOutbound {
    fn default() -> Self {
        Self { resolving: Arc::new(Semaphore::new(RESOLVING_MAX)) }
    }
}

impl Outbound for SystemOutbound {
    fn resolve(&self, name: &str) -> Pending<io::Result<Vec<IpAddr>>> {
        let (name, resolving) = (name.to_owned(), Arc::clone(&self.resolving));
        Box::pin(async move {
            let resolved = async {
                let permit = resolving.acquire_owned().await.map_err(io::Error::other)?;
                let resolve = move || {
                    // A lookup that nothing waits for any more still takes its thread.
                    let _permit = permit;
                    Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
                };
                tokio::task::spawn_blocking(resolve).await.map_err(io::Error::other)?
            };
            timeout(RESOLVE_TIMEOUT, resolved).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
        })
    }

    fn connect(&self, to: SocketAddr) -> Pending<io::Result<TcpStream>> {
        Box::pin(async move {
            let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(to)).await;
            let stream = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }

    /// The kernel chooses an address of this machine as the source of what is sent to itself. Nothing is sent here.
    fn is_own(&self, address: IpAddr) -> bool {
        // All of 127.0.0.0/8 is, and the source is one address of it.
        if address.is_loopback() {
            return true;
        }
        let any: IpAddr = match address {
            IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        let source = || -> io::Result<IpAddr> {
            let socket = UdpSocket::bind((any, 0))?;
            socket.connect((address, 9))?;
            Ok(socket.local_addr()?.ip())
        };
        // What has no route is not connected to either.
        source().is_ok_and(|source| source == address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_addresses_of_this_machine_are_its_own() {
        let system = SystemOutbound::default();
        assert!(system.is_own("127.0.0.1".parse().unwrap()));
        assert!(system.is_own("127.1.2.3".parse().unwrap()));
        assert!(!system.is_own("192.0.2.1".parse().unwrap()));
        let found = system.resolve("localhost").await.unwrap();
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty(), "{found:?}");
        assert!(system.resolve("no-such-host.invalid").await.is_err());
    }
}
