//! Ctrl-C and SIGTERM: once, the home is shut down in good order; twice, the process ends where it stands.

use std::path::Path;
use std::sync::Arc;

use spinney::{Home, Shutdown};
use spinney_kernel::id::TreeId;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::exit;
use crate::hint::command;
use crate::ids::short;
use crate::out;

/// Listens for signals for as long as it lives.
pub(crate) struct Interrupts {
    came: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

impl Interrupts {
    /// Starts to listen.
    pub(crate) fn listen(home: Arc<Home>, path: &Path, tree: TreeId) -> std::io::Result<Self> {
        let mut signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let resume = command(path, &format!("resume {}", short(tree)));
        let (tell, came) = watch::channel(false);
        // A task of its own: who writes to a pipe that nobody empties must still be able to stop us.
        let task = tokio::spawn(async move {
            next(&mut signals).await;
            tell.send_replace(true);
            out::note("stopping: what runs may end, nothing new starts. Ctrl-C again ends it at once.");
            tokio::select! {
                () = home.shutdown(Shutdown::Stop) => next(&mut signals).await,
                () = next(&mut signals) => {}
            }
            out::note(&format!("ended at once. Go on with: {resume}"));
            exit::at_once()
        });
        Ok(Self { came, task })
    }

    /// Whether one came.
    pub(crate) fn came(&self) -> bool {
        *self.came.borrow()
    }

    /// Listens no more. A signal ends the process from here on, as it does any other.
    pub(crate) async fn close(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

async fn next((interrupt, terminate): &mut (Signal, Signal)) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
