//! The socket of a box with a network: the first process of the box makes it in the box's own network and hands it out to
//! us. A socket belongs to the network in which it was made, so what is in the box connects to it, and we accept, without
//! a process between that copies bytes. The box keeps no copy of it.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use super::confinement::{BoxNetwork, LocalhostMeaning};
use super::descriptors;
use super::handed_out::HandedOut;

/// Where the proxy is in every box: the network is the box's own, so nothing else is there.
const PROXY_PORT: u16 = 61_080;
/// Connections that wait to be accepted; others wait in the box.
const BACKLOG: i32 = 256;

/// The variables that programs read, in both ways of writing.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
const NO_PROXY_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// What a command serves for itself.
const NO_PROXY: &str = "localhost,127.0.0.1,::1";

/// The variables of a box with this network. Nothing that is given replaces them.
pub(super) fn variables(network: BoxNetwork) -> Vec<(&'static str, String)> {
    let BoxNetwork::Proxied { localhost } = network else { return Vec::new() };
    let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
    let direct = match localhost {
        LocalhostMeaning::Box => NO_PROXY,
        LocalhostMeaning::Machine => "",
    };
    let proxied = PROXY_VARIABLES.into_iter().map(|name| (name, proxy.clone()));
    proxied.chain(NO_PROXY_VARIABLES.into_iter().map(|name| (name, direct.to_owned()))).collect()
}

/// Makes the socket in the network of this process, and the one of a served port if there is one, and keeps nothing of them.
pub(super) fn hand_out_listeners(to: &OwnedFd, served_port: Option<u16>) -> io::Result<()> {
    let proxy = listener(PROXY_PORT)?;
    let served = served_port.map(listener).transpose()?;
    let sockets: Vec<_> = [&proxy].into_iter().chain(&served).map(|socket| socket.as_fd()).collect();
    Ok(descriptors::send(to.as_fd(), &[0], &sockets)?)
}

fn listener(port: u16) -> io::Result<OwnedFd> {
    let listener = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&listener, true)?;
    bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// The sockets of a box, as soon as the box is made.
#[derive(Debug)]
pub struct BoxListener(HandedOut);

/// The sockets of a box that was made.
#[derive(Debug)]
pub struct BoxListeners {
    /// Where it looks for its proxy.
    pub proxy: tokio::net::TcpListener,
    /// That of its served port.
    pub served: Option<tokio::net::TcpListener>,
}

impl BoxListener {
    pub(super) fn new(from: OwnedFd) -> io::Result<Self> {
        HandedOut::new(from).map(Self)
    }

    /// Waits for the box. None if it was not made.
    pub async fn listener(self) -> io::Result<Option<tokio::net::TcpListener>> {
        Ok(self.listeners().await?.map(|listeners| listeners.proxy))
    }

    /// The same with the socket of its served port.
    pub async fn listeners(self) -> io::Result<Option<BoxListeners>> {
        let mut received = self.0.receive().await?.into_iter().map(in_runtime);
        let Some(proxy) = received.next().transpose()? else { return Ok(None) };
        Ok(Some(BoxListeners { proxy, served: received.next().transpose()? }))
    }
}

fn in_runtime(socket: OwnedFd) -> io::Result<tokio::net::TcpListener> {
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}
