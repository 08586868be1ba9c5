//! Ctrl-C and SIGTERM: the first one shuts the home down in good order, the second one ends the process where it stands.
//!
//! Signals have a thread and a runtime of their own, for as long as the process lives: however busy or blocked the
//! workers of trees are, the second signal ends the process. That thread therefore never waits for a lock that a worker
//! may hold, standard error's included.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use std::{io, thread};

use spinney::{Home, Shutdown};
use spinney_kernel::words::TreeId;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::hint::about;
use crate::{exit, out};

/// How long a line on standard error may take when the process is about to end.
const LAST_LINE_MAX: Duration = Duration::from_millis(200);

/// Handles signals while a tree is followed.
pub(crate) struct Interrupts {
    came: watch::Receiver<bool>,
    is_closed: Arc<AtomicBool>,
    stopping: JoinHandle<()>,
}

/// What the thread for signals knows.
struct Listener {
    signals: (Signal, Signal),
    tell: watch::Sender<bool>,
    is_closed: Arc<AtomicBool>,
    /// The command that goes on with the tree.
    resume: String,
}

impl Interrupts {
    /// Starts to listen.
    pub(crate) fn listen(home: Arc<Home>, path: &Path, tree: TreeId) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let inside = runtime.enter();
        let signals = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        drop(inside);
        let (tell, came) = watch::channel(false);
        let is_closed = Arc::new(AtomicBool::new(false));
        let resume = about(path, "resume", tree, &[]);
        let listener = Listener { signals, tell, is_closed: Arc::clone(&is_closed), resume };
        thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listener.run()))?;
        let mut first = came.clone();
        let stopping = tokio::spawn(async move {
            // The other end lives as long as the process.
            if first.wait_for(|came| *came).await.is_ok() {
                home.shutdown(Shutdown::Stop).await;
            }
        });
        Ok(Self { came, is_closed, stopping })
    }

    /// Whether one came.
    pub(crate) fn came(&self) -> bool {
        *self.came.borrow()
    }

    /// The tree is no longer followed. From here on any signal ends the process at once.
    pub(crate) async fn close(self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.stopping.abort();
        let _ = self.stopping.await;
    }
}

impl Listener {
    async fn run(mut self) {
        self.next().await;
        // Looked at before anybody is told: whoever is told may close at once, and still has the result to write.
        if !self.is_closed.load(Ordering::SeqCst) {
            self.tell.send_replace(true);
            let stopping = || {
                out::note(
                    "stopping: running calls finish, nothing new starts. Press Ctrl-C again to stop at once.",
                );
            };
            // Where no thread can be made nobody is told; the second signal still ends the process.
            let _ = thread::Builder::new().spawn(stopping);
            self.next().await;
            if !self.is_closed.load(Ordering::SeqCst) {
                let resume = self.resume;
                last_line(format!("stopped at once. Continue with: {resume}"));
            }
        }
        exit::at_once()
    }

    async fn next(&mut self) {
        let (interrupt, terminate) = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

/// Writes a line to standard error, if that can be done at once.
fn last_line(line: String) {
    let (done, wait) = sync_channel(1);
    let _ = thread::Builder::new().spawn(move || {
        out::note(&line);
        let _ = done.send(());
    });
    match wait.recv_timeout(LAST_LINE_MAX) {
        // Whoever blocks standard error does not read this either.
        Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
    }
}
