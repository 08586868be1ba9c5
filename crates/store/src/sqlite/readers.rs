//! A small pool of reader threads beside the writer, each with its own connection.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use futures::channel::oneshot;
use rusqlite::Connection;
use spinney_journal::{JournalFault, Reading};

use super::look::Reader;
use super::queue::Queue;

/// Number of threads. All except the first open their connection on demand.
const READERS: usize = 4;

type Job = Box<dyn FnOnce(Result<&mut Reader, JournalFault>) + Send>;

pub(super) struct Readers {
    queue: Arc<Queue<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Opens a connection to the journal of a home, and starts the threads.
    pub(super) fn open(home: &Path) -> Result<Self, JournalFault> {
        let (queue, mut first) = (Arc::new(Queue::new()), Some(Reader::open(home)?));
        let threads = (0..READERS).map(|_| {
            let (queue, home, reader) = (Arc::clone(&queue), home.to_owned(), first.take());
            std::thread::spawn(move || run(&queue, &home, reader))
        });
        let threads = threads.collect();
        Ok(Self { queue, threads })
    }

    /// Runs `read` on one snapshot.
    pub(super) fn read<T: Send + 'static>(
        &self,
        read: impl Fn(&Connection) -> Result<T, JournalFault> + Send + 'static,
    ) -> Reading<T> {
        let (answer, answered) = oneshot::channel();
        let job = move |reader: Result<&mut Reader, JournalFault>| {
            // The caller may be gone.
            if !answer.is_canceled() {
                let _ = answer.send(reader.and_then(|reader| reader.read(read)));
            }
        };
        match self.queue.push(Box::new(job)) {
            Ok(()) => Box::pin(async move { answered.await.unwrap_or(Err(JournalFault::Closed)) }),
            Err((_, fault)) => Box::pin(std::future::ready(Err(fault))),
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            // A callback on one of these threads may drop the last handle; then the thread ends by itself.
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
                job(Err(fault));
            } else if let Some(open) = &mut reader {
                // A bug stops only the caller, and the panic hook has reported it.
                if catch_unwind(AssertUnwindSafe(|| job(Ok(open)))).is_err() {
                    reader = None;
                }
            }
        }
    }
}

fn opened(reader: &mut Option<Reader>, home: &Path) -> Result<(), JournalFault> {
    if reader.is_none() {
        *reader = Some(Reader::open(home)?);
    }
    Ok(())
}
