//! The signals that end a run of `spinney exec`.

use std::future::pending;
use std::time::Duration;

use anyhow::Result;
use spinney_drivers::processes::listen_unless_ignored;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

/// Ctrl-C; and SIGTERM, a closed terminal and Ctrl-\.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
    quit: Option<Signal>,
}

/// What a signal asks for.
pub(crate) enum StopSignal {
    Interrupted,
    Terminated,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: listen_unless_ignored(SignalKind::hangup())?,
            quit: listen_unless_ignored(SignalKind::quit())?,
        })
    }

    pub(crate) async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupted,
            _ = self.terminate.recv() => StopSignal::Terminated,
            () = came(&mut self.hangup) => StopSignal::Terminated,
            () = came(&mut self.quit) => StopSignal::Terminated,
        }
    }

    /// Whether a signal comes within this time.
    pub(crate) async fn came_within(&mut self, time: Duration) -> bool {
        timeout(time, self.next()).await.is_ok()
    }

    /// One more signal after the end. A closed terminal does not count: the kernel and the shell both tell of it.
    pub(crate) async fn again(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = came(&mut self.quit) => {}
        }
    }
}

async fn came(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => pending().await,
    }
}
