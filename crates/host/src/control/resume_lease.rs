//! A tree that the process which has its journal open runs for this one. The connection is the lease: when one side closes
//! it, or dies, the tree is stopped cleanly.

use std::io;
use std::path::Path;
use std::time::Duration;

use spinney_kernel::primitives::{Seq, TreeId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::sleep;

use super::client::{holder, is_nobody_there, older_owner};
use super::text::next_line;
use super::{ControlReply, ControlRequest, SteerError, line};
use crate::system::socket_address::SocketAddress;
use crate::user::allowed_host::AllowedHost;

/// Tries to reach a process that has the journal open but does not listen: it may be starting or ending.
const TRIES_MAX: u32 = 40;
const TRY: Duration = Duration::from_millis(50);

/// What the process that has a journal open says to a resume.
pub enum ResumeAnswer {
    /// It runs the tree.
    Runs(ResumeLease),
    /// The tree has ended.
    HasEnded,
    /// It does not run it, for this reason.
    Refused(String),
    /// No process has the journal open any more.
    Free,
}

/// The connection to the process that runs a tree for this one.
pub struct ResumeLease {
    /// The last event before that.
    pub past: Seq,
    /// The process that runs it, if it is known.
    pub pid: Option<u32>,
    from: BufReader<OwnedReadHalf>,
    to: Option<OwnedWriteHalf>,
}

impl ResumeLease {
    /// Asks the process that has the journal of a tree open to run it. The answer takes as long as reading the tree does.
    pub async fn ask(home: &Path, tree: TreeId, hosts: &[AllowedHost]) -> Result<ResumeAnswer, SteerError> {
        let ask = ControlRequest::Resume { tree, hosts: hosts.iter().map(ToString::to_string).collect() };
        let mut tries = 0;
        loop {
            let pid = holder(home).ok().flatten();
            let why = match Self::connect(home, &ask).await {
                Ok((ControlReply::Resumed { past }, from, to)) => {
                    return Ok(ResumeAnswer::Runs(Self { past, pid, from, to: Some(to) }));
                }
                Ok((ControlReply::HasEnded, ..)) => return Ok(ResumeAnswer::HasEnded),
                Ok((answer, ..)) if answer.is_unknown_ask() => return Err(older_owner(home)),
                Ok((ControlReply::Refused { message, .. } | ControlReply::Failed { message }, ..)) => {
                    return Ok(ResumeAnswer::Refused(message));
                }
                Ok(_) => {
                    return Ok(ResumeAnswer::Refused("the answer belongs to another request".to_owned()));
                }
                Err(why) => why,
            };
            // A process that ends closes the connection without an answer; nothing runs then.
            if pid.is_none() {
                sleep(TRY).await;
                return Ok(ResumeAnswer::Free);
            }
            if !is_nobody_there(&why) && why.kind() != io::ErrorKind::UnexpectedEof {
                return Err(SteerError::Unreachable { home: home.to_owned(), why });
            }
            if tries == TRIES_MAX {
                return Err(SteerError::Busy { home: home.to_owned(), why });
            }
            tries += 1;
            sleep(TRY).await;
        }
    }

    async fn connect(
        home: &Path,
        ask: &ControlRequest,
    ) -> io::Result<(ControlReply, BufReader<OwnedReadHalf>, OwnedWriteHalf)> {
        let address = SocketAddress::for_home(home)?;
        address.check()?;
        let (from, mut to) = UnixStream::connect(address.path()).await?.into_split();
        to.write_all(&line::encode(ask)?).await?;
        let mut from = BufReader::new(from);
        let answer = line::decode(&next_line(&mut from).await?).map_err(io::Error::other)?;
        Ok((answer, from, to))
    }

    /// Waits until the tree does not run there any more: it has ended, or the process stops or is gone.
    pub async fn ended(&mut self) {
        while let Ok(read) = self.from.read_u8().await {
            let _ = read;
        }
    }

    /// Lets the tree be stopped cleanly; [`ended`](Self::ended) says when it is.
    pub fn stop(&mut self) {
        // The half that is dropped is shut down.
        self.to = None;
    }
}
