//! What the first process of a box makes inside and hands out to us: its sockets and its terminal.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::descriptors;
use super::network::BoxListener;
use super::terminal::BoxTerminal;

/// Everything of one box.
#[derive(Debug, Default)]
pub(super) struct BoxHandouts {
    pub(super) network: Option<BoxListener>,
    pub(super) terminal: Option<BoxTerminal>,
}

/// Our end of the way on which it comes.
#[derive(Debug)]
pub(super) struct HandedOut(UnixStream);

/// Our end of such a way, and that of the box.
pub(super) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, boxes) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok((ours, boxes))
}

impl HandedOut {
    pub(super) fn new(from: OwnedFd) -> io::Result<Self> {
        Ok(Self(UnixStream::from_std(from.into())?))
    }

    /// Waits for the box. Nothing if it was not made.
    pub(super) async fn receive(self) -> io::Result<Vec<OwnedFd>> {
        self.0.async_io(Interest::READABLE, || Ok(descriptors::receive(&self.0, &mut [0])?.1)).await
    }
}
