//! Ctrl-C and SIGTERM: the first one shuts the home down gracefully, the second one ends the process immediately. If no process
//! reads the output any more, that counts as the first one.
//!
//! Signals have their own thread and runtime for the life of the process: however busy or blocked the workers are,
//! the second signal ends the process. That thread therefore never waits for a lock that a worker may hold, including
//! standard error's.

use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use std::{io, thread};

use spinney::{Home, Shutdown};
use spinney_kernel::primitives::TreeId;
use spinney_terminal::{out, reader};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::exit;
use crate::hint::about;

/// How long a line on standard error may take when the process is about to end.
const LAST_LINE_MAX: Duration = Duration::from_millis(200);

pub(crate) struct Interrupts {
    came: watch::Receiver<bool>,
    is_closed: Arc<AtomicBool>,
    /// Shuts the home down; none while the tree runs in another process.
    stopping: Option<JoinHandle<()>>,
}

/// The state of the signal thread.
struct Listener {
    signals: Signals,
    reader: Reader,
    tell: watch::Sender<bool>,
    is_closed: Arc<AtomicBool>,
    resume: String,
}

impl Interrupts {
    /// For a tree that runs in this process.
    pub(crate) fn listen(home: Arc<Home>, path: &Path, tree: TreeId) -> io::Result<Self> {
        Ok(Self::of_tree(path, tree)?.stopping(home))
    }

    /// The same for a process that leaves its output: the reader that goes then wants the tree to continue.
    pub(crate) fn detached(home: Arc<Home>, path: &Path, tree: TreeId) -> io::Result<Self> {
        Ok(Self::begin(path, tree, Reader::Leaves)?.stopping(home))
    }

    /// For a tree that another process runs for this one, which stops it.
    pub(crate) fn of_tree(path: &Path, tree: TreeId) -> io::Result<Self> {
        Self::begin(path, tree, Reader::Stays)
    }

    fn begin(path: &Path, tree: TreeId, reader: Reader) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let inside = runtime.enter();
        let [interrupt, terminate] = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
        let signals = Signals { interrupt: interrupt?, terminate: terminate? };
        drop(inside);
        let (tell, came) = watch::channel(false);
        let is_closed = Arc::new(AtomicBool::new(false));
        let resume = about(path, "resume", tree, &[]);
        let listener = Listener { signals, reader, tell, is_closed: Arc::clone(&is_closed), resume };
        thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listener.run()))?;
        Ok(Self { came, is_closed, stopping: None })
    }

    /// From now on the tree runs in this process.
    pub(crate) fn stopping(mut self, home: Arc<Home>) -> Self {
        let mut first = self.came.clone();
        self.stopping = Some(tokio::spawn(async move {
            // The sender lives as long as the process.
            if first.wait_for(|came| *came).await.is_ok() {
                home.shutdown(Shutdown::Stop).await;
            }
        }));
        self
    }

    /// Waits for the first one.
    pub(crate) async fn first(&mut self) {
        if self.came.wait_for(|came| *came).await.is_err() {
            pending::<()>().await;
        }
    }

    pub(crate) fn came(&self) -> bool {
        *self.came.borrow()
    }

    /// The tree is no longer followed. From now on any signal ends the process at once.
    pub(crate) async fn close(self) {
        self.is_closed.store(true, Ordering::SeqCst);
        if let Some(stopping) = self.stopping {
            stopping.abort();
            let _ = stopping.await;
        }
    }
}

impl Listener {
    async fn run(mut self) {
        let first = tokio::select! {
            () = self.signals.next() => First::Signal,
            () = self.reader.gone() => First::ReaderGone,
        };
        // Checked before others are notified: they may close at once, and still have the result to write.
        match (first, self.is_closed.load(Ordering::SeqCst)) {
            (First::Signal, true) => {}
            // What is still to be written finds out.
            (First::ReaderGone, true) => self.signals.next().await,
            (first, false) => {
                self.tell.send_replace(true);
                // If no thread can be started there is no message; the next signal still ends the process.
                let _ = thread::Builder::new().spawn(move || out::note(first.text()));
                self.signals.next().await;
                if !self.is_closed.load(Ordering::SeqCst) {
                    let resume = self.resume;
                    last_line(format!("stopped at once. Continue with: {resume}"));
                }
            }
        }
        exit::at_once()
    }
}

/// What the end of the output's reader means.
#[derive(Clone, Copy)]
enum Reader {
    /// That the home is shut down.
    Stays,
    /// Nothing.
    Leaves,
}

impl Reader {
    async fn gone(self) {
        match self {
            Self::Stays => reader::gone().await,
            Self::Leaves => pending().await,
        }
    }
}

/// Why the home is shut down.
#[derive(Clone, Copy)]
enum First {
    Signal,
    ReaderGone,
}

impl First {
    const fn text(self) -> &'static str {
        match self {
            Self::Signal => {
                "stopping: running calls finish, nothing new starts. Press Ctrl-C again to stop at once."
            }
            Self::ReaderGone => {
                "stopping, because the reader of the output went away: running calls finish, nothing new starts. Press Ctrl-C to stop at once."
            }
        }
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Writes a line to standard error, if that does not block.
fn last_line(line: String) {
    let (done, wait) = sync_channel(1);
    let _ = thread::Builder::new().spawn(move || {
        out::note(&line);
        let _ = done.send(());
    });
    match wait.recv_timeout(LAST_LINE_MAX) {
        // If standard error is blocked, there is no reader either.
        Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
    }
}
