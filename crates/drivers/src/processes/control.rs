//! The socket between a process and a guard that it started. Each message is one packet of JSON, and the first one brings
//! the program's standard streams. Its end is the death of the other side.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Longer than any message.
const MESSAGE_BYTES_MAX: usize = 1_024;
const STREAMS: usize = 3;

/// Where the processes of a run are for the terminal and for signals to groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramSession {
    /// In our process group. At a terminal only one group may read from it.
    Shared,
    /// In their own group of our session.
    OwnGroup,
    /// In their own session, without a terminal.
    OwnSession,
}

/// The first message to a guard.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct GuardOrder {
    pub(super) session: ProgramSession,
    pub(super) open_files: Option<u64>,
}

/// Later orders to a guard.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GuardRequest {
    /// Interrupt everything.
    Interrupt,
    /// Ask everything to end, and kill it after a while.
    End,
    Kill,
}

/// What a guard says.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GuardReport {
    NotStarted { errno: i32 },
    Ended { status: i32 },
}

/// One side of it. It keeps packets apart; the type for streams is only how tokio waits for it.
#[derive(Debug)]
pub(super) struct ControlSocket(UnixStream);

impl ControlSocket {
    fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self(UnixStream::from_std(socket.into())?))
    }

    /// Our side, and the one that a guard gets.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (ours, guards) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Self::new(ours)?, guards))
    }

    /// The guard's side, which is its standard input: descriptors beyond the standard ones cannot be handed to one process
    /// alone without unsafe code. The program gets a standard input of its own, and so does not inherit this one.
    pub(super) fn of_guard() -> io::Result<Self> {
        Self::new(io::stdin().as_fd().try_clone_to_owned()?)
    }

    /// Does not wait: a message that does not fit because the other side has read none for long is an error.
    pub(super) fn send(&self, message: &impl Serialize) -> io::Result<()> {
        self.send_with(message, &[])
    }

    pub(super) fn send_with(&self, message: &impl Serialize, streams: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !streams.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(streams)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        sendmsg(self.0.as_fd(), &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The next message; none if the other side is gone. May be dropped at any moment without losing one.
    pub(super) async fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        Ok(self.receive_with().await?.map(|(message, _)| message))
    }

    pub(super) async fn receive_with<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let received = self.0.async_io(Interest::READABLE, || receive_now(self.0.as_fd())).await;
        match received {
            Ok((bytes, _)) if bytes.is_empty() => Ok(None),
            Ok((bytes, streams)) => Ok(Some((serde_json::from_slice(&bytes)?, streams))),
            // It ended without reading everything.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn receive_now(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags)?;
    bytes.truncate(received.bytes);
    let mut streams = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            streams.extend(received);
        }
    }
    Ok((bytes, streams))
}
