//! Who writes when. There is one pen. Whoever appends puts the batch down and takes the pen, if it lies there, for
//! everything that was put down by then: one transaction, and no hand-over between threads. If others append all the
//! time, it is left until there are some together; a thread writes what has waited long enough.
//! `docs/decisions/0012-writer.md` has the figures.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use spinney_kernel::port::journal::JournalFault;

use super::mover::Word;
use super::pen::{Ended, Job, Pen};

/// Most jobs that wait; then whoever brings another waits until it is written.
const WAITING_MAX: usize = 4_096;
/// Most jobs in one transaction.
const GROUP_MAX: usize = 1_024;
/// Most jobs for which the first waits.
const COMPANY_MAX: usize = 24;
/// One of so many trees that write is waited for; the others work meanwhile.
const CROWD_SHARE: usize = 2;
/// How long it waits for them.
const PATIENCE: Duration = Duration::from_micros(200);

/// Where the pen lies, and what is to be written.
pub(super) struct Desk {
    pen: Mutex<Pen>,
    tray: Mutex<Tray>,
    /// The thread may have something to do.
    wanted: Condvar,
    /// Told when pages are to be moved.
    mover: SyncSender<Word>,
}

struct Tray {
    jobs: VecDeque<Job>,
    /// How many are written together if they come soon. It grows while others come during a write or take turns.
    company: usize,
    /// How often the tray was emptied.
    emptied: u64,
    /// Nothing may be put down any more.
    is_closed: bool,
    /// The thread does not look at the clock: it has to be woken.
    is_asleep: bool,
}

impl Tray {
    fn is_ready(&self) -> bool {
        self.jobs.len() >= self.company
    }
}

impl Desk {
    pub(super) fn new(pen: Pen, mover: SyncSender<Word>) -> Self {
        let tray = Tray { jobs: VecDeque::new(), company: 1, emptied: 0, is_closed: false, is_asleep: false };
        Self { pen: Mutex::new(pen), tray: Mutex::new(tray), wanted: Condvar::new(), mover }
    }

    /// Writes a job, or leaves it to whoever comes next.
    pub(super) fn write(&self, job: Job) {
        let mut tray = self.tray();
        if tray.is_closed {
            drop(tray);
            return job.refused(JournalFault::Closed).tell();
        }
        tray.jobs.push_back(job);
        let (count, is_ready) = (tray.jobs.len(), tray.is_ready());
        if !is_ready {
            return self.wake(tray);
        }
        drop(tray);
        // Whoever holds the pen looks at the tray again after laying it down, so nothing is forgotten.
        let pen = if count >= WAITING_MAX { Some(self.pen()) } else { self.free_pen() };
        if let Some(pen) = pen {
            self.write_all(pen);
        }
    }

    /// Writes what is there in one transaction and tells everybody how it ended.
    fn write_all(&self, mut pen: MutexGuard<'_, Pen>) {
        let mut tray = self.tray();
        let count = tray.jobs.len().min(GROUP_MAX);
        let group: Vec<Job> = tray.jobs.drain(..count).collect();
        tray.emptied += 1;
        drop(tray);
        let ended = if group.is_empty() { Vec::new() } else { pen.write(group) };
        let (must_move, crowd) = (pen.must_move(), pen.crowd());
        drop(pen);
        if must_move {
            // If it cannot be told, it has been.
            let _ = self.mover.try_send(Word::Full);
        }
        self.look_again(crowd);
        ended.into_iter().for_each(tell_safely);
    }

    /// After the pen was laid down: whoever found it taken has left something. Where a processor has only one worker at
    /// a time, nobody finds it taken, and the crowd shows all the same.
    fn look_again(&self, crowd: usize) {
        let mut tray = self.tray();
        if !tray.jobs.is_empty() || tray.company * CROWD_SHARE < crowd {
            tray.company = (tray.company * 2).min(COMPANY_MAX);
        }
        if !tray.jobs.is_empty() {
            self.wake(tray);
        }
    }

    /// Something lies in the tray: the thread is to write it, or to look at the clock. If it does that already it is left
    /// alone, because to wake it takes as long as to write.
    fn wake(&self, mut tray: MutexGuard<'_, Tray>) {
        let must_wake = std::mem::take(&mut tray.is_asleep) || tray.is_ready();
        drop(tray);
        if must_wake {
            self.wanted.notify_one();
        }
    }

    /// Does something while nobody writes.
    pub(super) fn pause(&self, work: impl FnOnce()) {
        let pen = self.pen();
        work();
        let crowd = pen.crowd();
        drop(pen);
        self.look_again(crowd);
    }

    /// The thread: writes what nobody else does, until the desk is closed.
    pub(super) fn run(&self) {
        let mut tray = self.tray();
        loop {
            while tray.jobs.is_empty() {
                if tray.is_closed {
                    drop(tray);
                    return self.pen().close();
                }
                tray.is_asleep = true;
                tray = whole(self.wanted.wait(tray));
            }
            tray.is_asleep = false;
            let before = tray.emptied;
            let alone = |tray: &mut Tray| tray.emptied == before && !tray.is_ready() && !tray.is_closed;
            let waited = self.wanted.wait_timeout_while(tray, PATIENCE, alone);
            let waited = waited.unwrap_or_else(PoisonError::into_inner);
            tray = waited.0;
            if tray.emptied != before {
                continue;
            }
            if waited.1.timed_out() {
                // Nobody came: the next does not wait for so many.
                tray.company = (tray.jobs.len() / 2).max(1);
            }
            drop(tray);
            self.write_all(self.pen());
            tray = self.tray();
        }
    }

    /// Nothing may be put down any more; the thread writes what is there and ends.
    pub(super) fn close(&self) {
        self.tray().is_closed = true;
        self.wanted.notify_one();
        // If nobody hears it, nobody is there.
        let _ = self.mover.send(Word::Closed);
    }

    fn tray(&self) -> MutexGuard<'_, Tray> {
        whole(self.tray.lock())
    }

    /// The pen, as soon as it lies there.
    fn pen(&self) -> MutexGuard<'_, Pen> {
        whole(self.pen.lock())
    }

    fn free_pen(&self) -> Option<MutexGuard<'_, Pen>> {
        match self.pen.try_lock() {
            Ok(pen) => Some(pen),
            Err(TryLockError::Poisoned(pen)) => Some(pen.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// What somebody held who panicked is good: a pen begins every transaction anew, and a tray is never half changed.
fn whole<T>(held: Result<T, PoisonError<T>>) -> T {
    held.unwrap_or_else(PoisonError::into_inner)
}

/// Tells one of a group. If that panics, the others are told all the same: a bug stops its own tree only, and the panic
/// hook has said so.
fn tell_safely(ended: Ended) {
    let _ = std::panic::catch_unwind(AssertUnwindSafe(|| ended.tell()));
}
