//! Trees that this process runs for others, each for as long as the process that asked keeps its connection open.

use std::io;

use spinney::ResumeError;
use spinney_host::control::{ControlReply, line, refused};
use spinney_host::home::inside::PeerProcess;
use spinney_host::{HostResumeError, OpenHome, OpenResumeError, with_causes};
use spinney_kernel::primitives::TreeId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader, Take};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::{Handler, ONE_TREE};

/// Most hosts that a request allows.
const HOSTS_MAX: usize = 256;

/// A process asks for a tree to be run.
pub(super) struct LeaseRequest {
    pub(super) from: BufReader<Take<OwnedReadHalf>>,
    pub(super) to: OwnedWriteHalf,
    pub(super) peer: io::Result<PeerProcess>,
    pub(super) tree: TreeId,
    pub(super) hosts: Vec<String>,
}

impl Handler {
    /// Runs a tree until it ends, or the other process closes its side. An answer is missing if this process is ending: then
    /// the other one can have the journal itself.
    pub(super) async fn lease(&self, request: LeaseRequest) -> io::Result<()> {
        let LeaseRequest { mut from, mut to, peer, tree, hosts } = request;
        let answer = match (self.check(peer).await, &self.open) {
            (Err(denied), _) => refused(denied.to_string()),
            (Ok(()), None) => refused(ONE_TREE.to_owned()),
            (Ok(()), Some(open)) => match resume(open, tree, &hosts).await {
                Some(answer) => answer,
                None => return Ok(()),
            },
        };
        let is_run = matches!(answer, ControlReply::Resumed { .. });
        let written = match line::encode(&answer) {
            Ok(line) => to.write_all(&line).await,
            Err(error) => Err(error.into()),
        };
        let Some(open) = self.open.as_ref().filter(|_| is_run) else { return written };
        tracing::debug!(target: "spinney::control", %tree, "runs for another process");
        if let (Ok(()), Some(running)) = (&written, self.home.tree(tree)) {
            // The other process says nothing more; the end of its side is the end of the lease.
            from.get_mut().set_limit(1);
            tokio::select! {
                _ = from.read_u8() => {}
                _ = running.ended() => {}
            }
        }
        open.stop(tree).await;
        to.shutdown().await
    }
}

/// None if this process is ending.
async fn resume(open: &OpenHome, tree: TreeId, hosts: &[String]) -> Option<ControlReply> {
    let hosts = if hosts.len() > HOSTS_MAX { Err("too many hosts".to_owned()) } else { parsed(hosts) };
    let hosts = match hosts {
        Ok(hosts) => hosts,
        Err(message) => return Some(refused(message)),
    };
    Some(match open.resume(tree, hosts).await {
        Ok(past) => ControlReply::Resumed { past },
        Err(OpenResumeError::Host(HostResumeError::Resume(ResumeError::Ended { .. }))) => {
            ControlReply::HasEnded
        }
        Err(OpenResumeError::Host(HostResumeError::Resume(ResumeError::Shutdown))) => return None,
        Err(error) => refused(with_causes(&error)),
    })
}

fn parsed<T: std::str::FromStr<Err: ToString>>(texts: &[String]) -> Result<Vec<T>, String> {
    texts.iter().map(|text| text.parse().map_err(|error: T::Err| error.to_string())).collect()
}
