//! The socket of a box with a network: the first process of the box makes it in the box's own network and hands it out to
//! us. A socket belongs to the network in which it was made, so what is in the box connects to it, and we accept, without
//! a process between that copies bytes. The box keeps no copy of it.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, socketpair};
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::confinement::{BoxNetwork, LocalhostMeaning};
use super::descriptors;
use super::forks::hand_over;

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

/// Our end of the way on which the socket is handed out, and that of the box.
pub(super) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, boxes) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok((ours, boxes))
}

/// Makes the socket in the network of this process, and keeps nothing of it.
pub(super) fn hand_out_listener(to: &OwnedFd) -> io::Result<()> {
    let listener = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_reuseaddr(&listener, true)?;
    bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, PROXY_PORT))?;
    listen(&listener, BACKLOG)?;
    hand_over(to.as_fd(), listener.as_fd())
}

/// The socket of a box, as soon as the box is made.
#[derive(Debug)]
pub struct BoxListener(UnixStream);

impl BoxListener {
    pub(super) fn new(from: OwnedFd) -> io::Result<Self> {
        Ok(Self(UnixStream::from_std(from.into())?))
    }

    /// Waits for the box. None if it was not made.
    pub async fn listener(self) -> io::Result<Option<tokio::net::TcpListener>> {
        let Some(received) = self.0.async_io(Interest::READABLE, || receive(&self.0)).await? else {
            return Ok(None);
        };
        let listener = TcpListener::from(received);
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener).map(Some)
    }
}

fn receive(from: &UnixStream) -> io::Result<Option<OwnedFd>> {
    Ok(descriptors::receive(from, &mut [0])?.1.into_iter().next())
}
