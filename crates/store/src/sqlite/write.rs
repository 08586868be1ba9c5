//! Who writes when. There is one pen. Whoever appends puts the batch down and takes the pen, if it lies there, for
//! everything that was put down by then: one transaction, and no hand-over between threads. If others append all the
//! time, it is left until there are some together; a thread writes what has waited long enough.
//! `docs/decisions/0012-writer.md` has the figures.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use spinney_journal::JournalFault;

use super::mover::Word;
use super::pen::{Ended, Job, Pen};

/// Most jobs that wait; then whoever brings another waits until it is written.
const WAITING_MAX: usize = 4_096;
/// Most jobs in one transaction.
const GROUP_MAX: usize = 1_024;
/// Most jobs for which the first waits.
const COMPANY_MAX: usize = 48;
/// One of so many trees that write is waited for; the others work meanwhile.
const CROWD_SHARE: usize = 2;
/// How long it waits for them, if nobody says that nobody comes.
const PATIENCE: Duration = Duration::from_millis(1);

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
    /// Those who left something have nothing else to do.
    is_lull: bool,
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
        let tray = Tray {
            jobs: VecDeque::new(),
            company: 1,
            is_lull: false,
            emptied: 0,
            is_closed: false,
            is_asleep: false,
        };
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

    /// Nobody comes soon: what is there is written now, or by whoever writes as soon as that is done.
    pub(super) fn lull(&self) {
        let mut tray = self.tray();
        tray.is_lull = !tray.jobs.is_empty();
        let is_lull = tray.is_lull;
        if is_lull {
            // More do not come.
            tray.company = tray.company.min(tray.jobs.len());
        }
        drop(tray);
        if is_lull && let Some(pen) = self.free_pen() {
            self.write_all(pen);
        }
    }

    /// Writes what is there, and what is left by those who have nothing else to do then.
    fn write_all(&self, pen: MutexGuard<'_, Pen>) {
        self.write_group(pen);
        self.write_left();
    }

    /// Writes what was left while the pen was taken, if there is a lull.
    fn write_left(&self) {
        while self.tray().is_lull
            && let Some(pen) = self.free_pen()
        {
            self.write_group(pen);
        }
    }

    /// Writes what is there in one transaction and tells everybody how it ended.
    fn write_group(&self, mut pen: MutexGuard<'_, Pen>) {
        let mut tray = self.tray();
        let count = tray.jobs.len().min(GROUP_MAX);
        let group: Vec<Job> = tray.jobs.drain(..count).collect();
        tray.emptied += 1;
        tray.is_lull = false;
        drop(tray);
        // The time between the two lines is what the commit took: nothing here reads a clock.
        tracing::trace!(target: "spinney::journal", batches = count, "group commit started");
        let ended = if group.is_empty() { Vec::new() } else { pen.write(group) };
        tracing::debug!(target: "spinney::journal", batches = count, "group commit done");
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
        let comes = !tray.jobs.is_empty() && !tray.is_lull;
        if comes || tray.company * CROWD_SHARE < crowd {
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
        self.write_left();
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};

    use rusqlite::OpenFlags;
    use spinney_kernel::words::{Seq, TreeId};
    use spinney_testkit::conformance;

    use super::super::change::Encoded;
    use super::super::commit_count::CommitCount;
    use super::super::in_place::FilesInPlace;
    use super::super::link::Link;
    use super::super::schema;
    use super::*;

    /// A desk without its thread, where so many are waited for.
    fn desk(home: &tempfile::TempDir, company: usize) -> Desk {
        let link = Link::open(&home.path().join("journal.sqlite3"), OpenFlags::default()).unwrap();
        schema::prepare(&link).unwrap();
        let pen = Pen::new(link, CommitCount::open(home.path()).unwrap(), FilesInPlace::new(home.path()));
        let desk = Desk::new(pen, mpsc::sync_channel(1).0);
        desk.tray().company = company;
        desk
    }

    fn job(number: u8, told: &Arc<AtomicUsize>) -> Job {
        let append = conformance::of(TreeId::new([number; 16]), Seq(0), &conformance::batches()[0]);
        let told = Arc::clone(told);
        let done = Box::new(move |end: Result<_, _>| {
            told.fetch_add(usize::from(end.is_ok()), Ordering::SeqCst);
        });
        Job::Append(Box::new(Encoded::new(append).unwrap()), done)
    }

    #[test]
    fn what_waits_for_company_is_written_in_a_lull() {
        let (home, told) = (tempfile::tempdir().unwrap(), Arc::new(AtomicUsize::new(0)));
        let desk = desk(&home, 5);
        (1..=3).for_each(|number| desk.write(job(number, &told)));
        assert_eq!(told.load(Ordering::SeqCst), 0);
        desk.lull();
        assert_eq!(told.load(Ordering::SeqCst), 3);
        assert_eq!(desk.tray().company, 3, "no more come than came");
        desk.lull();
        assert!(!desk.tray().is_lull, "nothing is there to be written");
    }

    #[test]
    fn whoever_has_the_pen_writes_what_a_lull_found_meanwhile() {
        let (home, told) = (tempfile::tempdir().unwrap(), Arc::new(AtomicUsize::new(0)));
        let desk = desk(&home, 5);
        desk.pause(|| {
            desk.write(job(1, &told));
            desk.lull();
            assert_eq!(told.load(Ordering::SeqCst), 0);
        });
        assert_eq!((told.load(Ordering::SeqCst), desk.tray().company), (1, 1));
        desk.write(job(2, &told));
        assert_eq!(told.load(Ordering::SeqCst), 2, "one alone does not wait");
    }
}
