//! A small pool of reader threads beside the writer, each with its own connection. Threads start when they are needed: most
//! commands read a little, one read after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use futures::channel::oneshot;
use rusqlite::Connection;
use spinney_journal::{JournalFault, Reading};

use super::OpenHomeError;
use super::queue::Queue;
use super::read_only::Reader;

/// Most threads. All except the first open their connection themselves.
const READERS: usize = 4;

type Job = Box<dyn FnOnce(Result<&mut Reader, JournalFault>) + Send>;

pub(super) struct Readers {
    home: PathBuf,
    queue: Arc<Queue<Job>>,
    /// Reads that have not ended.
    open: Arc<AtomicUsize>,
    threads: Mutex<Threads>,
}

struct Threads {
    /// The connection of the first one, until it starts.
    first: Option<Reader>,
    started: Vec<JoinHandle<()>>,
}

/// A read that has not ended.
struct OpenRead(Arc<AtomicUsize>);

impl OpenRead {
    fn begin(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(open))
    }
}

impl Drop for OpenRead {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Readers {
    /// Opens a connection to the journal of a home.
    pub(super) fn open(home: &Path) -> Result<Self, OpenHomeError> {
        let threads = Threads { first: Some(Reader::open(home)?), started: Vec::new() };
        Ok(Self {
            home: home.to_owned(),
            queue: Arc::new(Queue::new()),
            open: Arc::default(),
            threads: Mutex::new(threads),
        })
    }

    /// Runs `read` on one snapshot.
    pub(super) fn read<T: Send + 'static>(
        &self,
        read: impl Fn(&Connection) -> Result<T, JournalFault> + Send + 'static,
    ) -> Reading<T> {
        let (answer, answered) = oneshot::channel();
        let open = OpenRead::begin(&self.open);
        let job = move |reader: Result<&mut Reader, JournalFault>| {
            // The caller may be gone.
            if !answer.is_canceled() {
                let found = reader.and_then(|reader| reader.read(read));
                // Before the caller can read again: one that reads on and on needs one thread.
                drop(open);
                let _ = answer.send(found);
            }
        };
        match self.queue.push(Box::new(job)) {
            Ok(()) => self.start_if_needed(),
            Err((_, fault)) => return Box::pin(std::future::ready(Err(fault))),
        }
        Box::pin(async move { answered.await.unwrap_or(Err(JournalFault::Closed)) })
    }

    /// Starts another thread if each has something to read.
    fn start_if_needed(&self) {
        let mut threads = self.threads();
        if threads.started.len() < READERS && self.open.load(Ordering::SeqCst) > threads.started.len() {
            let (queue, home, reader) = (Arc::clone(&self.queue), self.home.clone(), threads.first.take());
            threads.started.push(std::thread::spawn(move || run(&queue, &home, reader)));
        }
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.close();
        let started = std::mem::take(&mut self.threads().started);
        for thread in started {
            // A callback on one of these threads may drop the last handle; then the thread ends on its own.
            if thread.thread().id() != std::thread::current().id() {
                // A thread that panicked has nothing left to do.
                let _ = thread.join();
            }
        }
    }
}

fn run(queue: &Queue<Job>, home: &Path, mut reader: Option<Reader>) {
    while let Some(jobs) = queue.take(1) {
        for job in jobs {
            if let Err(fault) = opened(&mut reader, home) {
                job(Err(fault.into()));
            } else if let Some(open) = &mut reader {
                // A bug stops only the caller, and the panic hook has reported it.
                if catch_unwind(AssertUnwindSafe(|| job(Ok(open)))).is_err() {
                    reader = None;
                }
            }
        }
    }
}

fn opened(reader: &mut Option<Reader>, home: &Path) -> Result<(), OpenHomeError> {
    if reader.is_none() {
        *reader = Some(Reader::open(home)?);
    }
    Ok(())
}
