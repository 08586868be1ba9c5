//! A program that runs in its box, with the connections that it makes.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::process::ExitStatus;
use std::time::Duration;

use spinney_drivers::commands::ProgramChanges;
use spinney_drivers::network::{ProxiedEnd, Proxy, ProxyLog, forward_all};
use spinney_drivers::sandbox::{BoxLauncher, BoxListener, BoxStep, BoxTerminal, BoxedExit, BoxedRun};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::system::processes;

/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);
/// As shells have it for a killed program.
const KILLED: i32 = 9;

/// A program in a box. Dropping it kills everything in there.
#[derive(Debug)]
pub struct BoxedProgramRun {
    run: BoxedRun,
    /// It starts guards, of which there is one.
    _launcher: BoxLauncher,
    connections: Option<Connections>,
    log: ProxyLog,
    changes: ProgramChanges,
    end: Option<BoxedProgramEnd>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exec) enum BoxedProgramEnd {
    Exited(ExitStatus),
    /// The program cannot be run.
    NotStarted {
        errno: i32,
    },
}

/// A connection that a program was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedConnection {
    /// Where it should have led; empty if the request could not be read.
    pub host: String,
    /// At that host.
    pub port: u16,
    /// Why, and what helps.
    pub reason: String,
}

impl BoxedProgramRun {
    pub(super) const fn new(
        launcher: BoxLauncher,
        run: BoxedRun,
        connections: Connections,
        log: ProxyLog,
        changes: ProgramChanges,
    ) -> Self {
        Self { run, _launcher: launcher, connections: Some(connections), log, changes, end: None }
    }

    /// Its terminal, if it has one; once.
    pub const fn take_terminal(&mut self) -> Option<BoxTerminal> {
        self.run.take_terminal()
    }

    /// What it made or changed that the person's other programs run or obey, in words. To be asked when it has ended.
    pub async fn changes(&self) -> Option<String> {
        let changes = self.changes.clone();
        spawn_blocking(move || changes.look()).await.ok().flatten()
    }

    /// The connections that it was refused until now, and how many more there may be.
    #[must_use]
    pub fn refused(&self) -> (Vec<RefusedConnection>, u64) {
        let (records, more) = self.log.records();
        let refused = records.into_iter().filter_map(|record| match record.end {
            ProxiedEnd::Refused(why) => {
                Some(RefusedConnection { host: record.host, port: record.port, reason: why.to_string() })
            }
            ProxiedEnd::Closed | ProxiedEnd::Stopped => None,
        });
        (refused.collect(), more)
    }

    /// Waits for the end of the program and of everything in its box. May be dropped and called again.
    pub(in crate::exec) async fn wait(&mut self) -> io::Result<BoxedProgramEnd> {
        let end = match self.end {
            Some(end) => end,
            None => end(self.run.finish(&mut |_, _| ()).await?.exit)?,
        };
        self.end = Some(end);
        if let Some(connections) = &mut self.connections {
            connections.close().await;
            self.connections = None;
        }
        Ok(end)
    }

    /// Interrupts everything in the box.
    pub(in crate::exec) fn interrupt(&self) {
        self.run.interrupt();
    }

    /// Asks everything in the box to end, and kills what is left after a while or when the program itself has ended.
    pub(in crate::exec) async fn end(&mut self) -> io::Result<()> {
        self.run.terminate();
        match timeout(GRACE, self.wait()).await {
            Ok(ended) => ended.map(drop),
            Err(_) => self.kill().await,
        }
    }

    /// Kills everything in the box.
    pub(in crate::exec) async fn kill(&mut self) -> io::Result<()> {
        self.run.cancel();
        self.wait().await.map(drop)
    }
}

fn end(exit: BoxedExit) -> io::Result<BoxedProgramEnd> {
    Ok(match exit {
        BoxedExit::Exited(code) => {
            BoxedProgramEnd::Exited(processes::exited_with(u8::try_from(code).unwrap_or(1)))
        }
        BoxedExit::Signalled(signal) => BoxedProgramEnd::Exited(processes::ended_by(signal)),
        BoxedExit::NotStarted { step: BoxStep::Exec, errno } => BoxedProgramEnd::NotStarted { errno },
        BoxedExit::NotStarted { step, errno } => {
            let why = io::Error::from_raw_os_error(errno);
            return Err(io::Error::other(format!("its box could not be made ({step:?}): {why}")));
        }
        BoxedExit::PastLimit(_) => {
            tracing::warn!("the program had too many processes at once, and everything in its box was ended");
            BoxedProgramEnd::Exited(processes::ended_by(KILLED))
        }
        // Its guard was killed, or it was ended by us.
        _ => BoxedProgramEnd::Exited(processes::ended_by(KILLED)),
    })
}

/// Serves what a program connects to: granted hosts through the proxy, and the gateway. Ends all of it when it is dropped.
#[derive(Debug)]
pub(super) struct Connections {
    task: JoinHandle<()>,
    /// Ends all of them when it is dropped.
    open: Option<oneshot::Sender<()>>,
}

impl Connections {
    pub(super) fn serve(listener: Option<BoxListener>, proxy: Proxy, gateway: SocketAddr) -> Self {
        let (open, over) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let Some(listener) = listener else { return };
            // Without a box nothing connects.
            let Ok(Some(sockets)) = listener.listeners().await else { return };
            let to_hosts = proxy.serve_during(async { Ok(Some(sockets.proxy)) }, over);
            let to_gateway = async {
                match &sockets.served {
                    Some(served) => match forward_all(served, gateway).await {},
                    None => pending().await,
                }
            };
            tokio::select! {
                _ = to_hosts => {}
                never = to_gateway => match never {},
            }
        });
        Self { task, open: Some(open) }
    }

    /// Ends all of them: when it returns, each is recorded.
    async fn close(&mut self) {
        self.open = None;
        if let Err(error) = (&mut self.task).await {
            tracing::warn!("the connections of the program did not end: {error}");
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.task.abort();
    }
}
