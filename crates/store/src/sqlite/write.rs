//! Who writes when. There is one pen. Whoever appends takes it if it lies there and nobody waits, because two hand-overs
//! between threads cost more than the write. Otherwise a thread takes it for all that wait, in one transaction.
//! `docs/decisions/0012-writer.md` has the figures.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spinney_kernel::port::journal::{Appended, JournalFault};

use super::change::Encoded;
use super::pen::{Ended, Job, Pen};

/// Most jobs that wait for the writer; then whoever appends waits too.
pub(super) const QUEUE_MAX: usize = 4_096;
/// Most jobs in one transaction.
const GROUP_MAX: usize = 1_024;

/// Where the pen lies.
pub(super) struct Desk {
    pen: Mutex<Pen>,
    /// Jobs in the queue and in the thread's hands.
    waiting: AtomicUsize,
}

impl Desk {
    pub(super) fn new(pen: Pen) -> Self {
        Self { pen: Mutex::new(pen), waiting: AtomicUsize::new(0) }
    }

    /// Writes a batch, here or through the thread.
    pub(super) fn append(&self, queue: &SyncSender<Job>, encoded: Box<Encoded>, done: Appended) {
        let Some(mut pen) = self.take_pen() else {
            return self.hand_over(queue, Job::Append(encoded, done));
        };
        let ended = pen.write(vec![Job::Append(encoded, done)]);
        let must_move = pen.must_move();
        drop(pen);
        if must_move {
            self.hand_over(queue, Job::Move);
        }
        ended.into_iter().for_each(Ended::tell);
    }

    /// The pen, if whoever appends should use it: nothing waits, so that no batch overtakes another, and nobody holds
    /// it. So at most one caller at a time waits for the disk, if its tree is `full`; everyone else goes on.
    fn take_pen(&self) -> Option<MutexGuard<'_, Pen>> {
        if self.waiting.load(Ordering::Acquire) > 0 { None } else { self.pen.try_lock().ok() }
    }

    /// Gives a job to the thread; if that is gone, whoever waits hears it.
    pub(super) fn hand_over(&self, queue: &SyncSender<Job>, job: Job) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        if let Err(unsent) = queue.send(job) {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            unsent.0.refused(JournalFault::Closed).tell();
        }
    }

    /// The thread: takes jobs until nobody can send any.
    pub(super) fn run(&self, queue: &Receiver<Job>) {
        while let Ok(first) = queue.recv() {
            let mut pen = self.pen();
            let group: Vec<Job> =
                std::iter::once(first).chain(queue.try_iter().take(GROUP_MAX - 1)).collect();
            let count = group.len();
            let ended = pen.write(group);
            drop(pen);
            // Before they are told: what they append next may find the pen lying there.
            self.waiting.fetch_sub(count, Ordering::AcqRel);
            ended.into_iter().for_each(tell_safely);
            let mut pen = self.pen();
            if pen.must_move() {
                pen.move_pages();
            }
        }
    }

    /// A pen that was dropped in a panic is good: it begins every transaction anew.
    fn pen(&self) -> MutexGuard<'_, Pen> {
        self.pen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells one of a group. If that panics, the others are told all the same: a bug stops its own tree only, and the panic
/// hook has said so.
fn tell_safely(ended: Ended) {
    let _ = std::panic::catch_unwind(AssertUnwindSafe(|| ended.tell()));
}
