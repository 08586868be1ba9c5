//! A port of a box that leads to one address of this machine and nowhere else.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Connections at the same time; others wait until one ends.
const CONNECTIONS_AT_ONCE_MAX: usize = 1_024;
/// When this process has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Leads every connection to a socket to one address. The connections end with this future.
pub async fn forward_all(listener: &TcpListener, to: SocketAddr) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_AT_ONCE_MAX => match accepted {
                Ok((client, _)) => {
                    connections.spawn(forward(client, to));
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// A side that breaks its connection breaks the other one.
async fn forward(mut client: TcpStream, to: SocketAddr) {
    let Ok(mut server) = TcpStream::connect(to).await else { return };
    // Without it, small messages are only slower.
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let _ = copy_bidirectional(&mut client, &mut server).await;
}
