//! A journal that crashes on purpose: before a batch is written, or after it is written and before it is confirmed. It may
//! also be away at a batch, until it is asked where the tree ends, or the tree may have another owner from then on.

use spinney_kernel::world::TreeState;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spinney_journal::{
    Append, Appended, Blocking, CatalogKind, CatalogRow, ChainHash, Claim, Entry, Fact, Head, HeadCursor,
    HeadPage, Journal, JournalFault, Reading, Reservation, Shared, StoredEntry,
};
use spinney_kernel::primitives::{BlobRef, Seq, Time, TreeId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::super::dice::Dice;
use super::record::Record;
use spinney::clock::Clock;

/// Batches that a slow disk writes before it confirms any of them.
const GROUP_MAX: u64 = 4;

/// Where and how one process ends, or is left without its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The batch of the journal at which it ends; the first is 1.
    pub at: u64,
    /// How.
    pub blow: CrashKind,
}

/// How one process ends, or is left without its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashKind {
    /// Before the batch is written.
    Before,
    /// After the batch is written and before it is confirmed.
    After,
    /// The home is shut down cleanly from here on.
    Stop,
    /// The batch is not written: the journal is away, and the process waits for it.
    Away,
    /// The batch is written, and the answer is lost: the journal is away.
    AwayWritten,
    /// Another owner claims the tree before the batch is written. The first batch of a tree comes before any claim.
    TakenOver,
}

/// When the process crashes. Shared by everything that must notice.
#[derive(Clone, Default)]
pub(super) struct Fate {
    pub(super) crashed: CancellationToken,
    pub(super) stop: CancellationToken,
    /// The tree has another owner, and this process knows it.
    pub(super) taken: CancellationToken,
}

/// The crashes that are still to come.
pub(super) type Crashes = Arc<Mutex<VecDeque<Crash>>>;

/// A journal that crashes on purpose.
pub(super) struct CrashingJournal {
    inner: Arc<dyn Journal>,
    record: Arc<Record>,
    crashes: Crashes,
    fate: Fate,
    clock: Arc<dyn Clock>,
    disk: Option<Disk>,
    is_away: AtomicBool,
    is_taken: AtomicBool,
}

/// A slow disk that confirms in groups.
pub(super) struct Disk {
    queue: Mutex<VecDeque<(Append, Appended)>>,
    work: Notify,
    dice: Mutex<Dice>,
}

impl Disk {
    pub(super) fn new(dice: Dice) -> Self {
        Self { queue: Mutex::default(), work: Notify::new(), dice: Mutex::new(dice) }
    }
}

impl CrashingJournal {
    pub(super) fn new(
        inner: Arc<dyn Journal>,
        record: Arc<Record>,
        crashes: Crashes,
        fate: Fate,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (is_away, is_taken) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { inner, record, crashes, fate, clock, disk: None, is_away, is_taken }
    }

    /// The same on a slow disk.
    pub(super) fn on(mut self, disk: Disk) -> Self {
        self.disk = Some(disk);
        self
    }

    /// Runs the slow disk for as long as a caller waits for it.
    pub(super) async fn turn(&self) {
        let Some(disk) = &self.disk else { return std::future::pending().await };
        loop {
            disk.work.notified().await;
            while !lock(&disk.queue).is_empty() {
                let (ms, most) = {
                    let mut dice = lock(&disk.dice);
                    (dice.below(4), dice.between(1, GROUP_MAX))
                };
                tokio::time::sleep(Duration::from_millis(ms)).await;
                let mut written = Vec::new();
                for _ in 0..most {
                    let Some((append, done)) = lock(&disk.queue).pop_front() else { break };
                    let seq = last(&append);
                    match self.write(append) {
                        Some(hash) => written.push((seq, hash, done)),
                        None => return std::future::pending().await,
                    }
                }
                written.into_iter().for_each(|(seq, hash, done)| self.confirm(seq, hash, done));
            }
        }
    }

    /// Writes a batch, unless the process crashes at it.
    fn write(&self, append: Append) -> Option<Result<ChainHash, JournalFault>> {
        if self.fate.crashed.is_cancelled() {
            return None;
        }
        if self.is_away.load(Ordering::SeqCst) {
            return Some(Err(away()));
        }
        let position = self.record.batches() + 1;
        let blow = lock(&self.crashes).pop_front_if(|crash| crash.at <= position).map(|crash| crash.blow);
        if blow == Some(CrashKind::Before) {
            self.fate.crashed.cancel();
            return None;
        }
        if blow == Some(CrashKind::Away) {
            self.is_away.store(true, Ordering::SeqCst);
            return Some(Err(away()));
        }
        if blow == Some(CrashKind::TakenOver) && self.inner.claim(append.tree).wait().is_ok() {
            self.is_taken.store(true, Ordering::SeqCst);
            self.record.saw("another owner claimed the tree");
        }
        let (tree, after, batch) = (append.tree, append.after, append.batch.decode());
        if let Some(before) = append.before
            && !self.inner.head(tree).wait().is_ok_and(|head| head.is_some_and(|head| head.hash == before))
        {
            self.record.broken(format!("{tree} after {after:?} is written behind what was not there"));
        }
        let (recorded, hears) = sync_channel(1);
        // The receiver lives until it was answered.
        self.inner.append(append, Box::new(move |result| drop(recorded.send(result))));
        let result = hears.recv().unwrap_or(Err(JournalFault::Closed));
        match &result {
            Ok(_) if self.is_taken() => {
                self.record.broken(format!("{tree} after {after:?} is written by an owner that lost it"));
            }
            Err(JournalFault::Owned { .. }) if self.is_taken() => {}
            Ok(_) => match &batch {
                Ok(batch) => self.record.written(tree, after, batch),
                Err(error) => self.record.broken(format!("a batch cannot be read: {error}")),
            },
            Err(fault) => self.record.broken(format!("the store failed: {fault}")),
        }
        match blow {
            Some(CrashKind::After) => {
                self.fate.crashed.cancel();
                return None;
            }
            Some(CrashKind::Stop) => self.fate.stop.cancel(),
            Some(CrashKind::AwayWritten) => {
                self.is_away.store(true, Ordering::SeqCst);
                return Some(Err(away()));
            }
            Some(CrashKind::Before | CrashKind::Away | CrashKind::TakenOver) | None => {}
        }
        if self.record.verdict().is_err() {
            // This process has ended.
            self.fate.crashed.cancel();
        }
        Some(result)
    }

    fn confirm(&self, seq: Seq, result: Result<ChainHash, JournalFault>, done: Appended) {
        if !self.fate.crashed.is_cancelled() {
            let is_written = result.is_ok();
            done(result);
            if is_written {
                self.record.confirmed(seq);
            } else if self.is_taken() {
                self.fate.taken.cancel();
            }
        }
    }

    fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::SeqCst)
    }
}

impl Journal for CrashingJournal {
    fn claim(&self, tree: TreeId) -> Reading<Claim> {
        at_once(self.inner.claim(tree))
    }

    fn release(&self, claim: Claim) -> Reading<()> {
        at_once(self.inner.release(claim))
    }

    fn append(&self, append: Append, done: Appended) {
        if let Some(disk) = &self.disk {
            lock(&disk.queue).push_back((append, done));
            disk.work.notify_one();
            return;
        }
        let seq = last(&append);
        if let Some(result) = self.write(append) {
            self.confirm(seq, result, done);
        }
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>> {
        at_once(self.inner.read(tree, after, batches_max))
    }

    fn read_stored(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<StoredEntry>> {
        at_once(self.inner.read_stored(tree, after, batches_max))
    }

    fn head(&self, tree: TreeId) -> Reading<Option<Head>> {
        let head = self.inner.head(tree).wait();
        if self.is_away.swap(false, Ordering::SeqCst) {
            self.record.opened(Time(self.clock.now_ms()));
        }
        Box::pin(std::future::ready(head))
    }

    fn changed(&self, tree: TreeId, after: Seq) -> Reading<Head> {
        self.inner.changed(tree, after)
    }

    fn head_page(&self, states: &[TreeState], after: HeadCursor, heads_max: usize) -> Reading<HeadPage> {
        at_once(self.inner.head_page(states, after, heads_max))
    }

    fn catalog(&self, kind: CatalogKind, prefix: &str) -> Reading<Vec<Fact>> {
        at_once(self.inner.catalog(kind, prefix))
    }

    fn reserve(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<Reservation> {
        at_once(self.inner.reserve(claim, kind, key))
    }

    fn free(&self, claim: Claim, kind: CatalogKind, key: &str) -> Reading<()> {
        at_once(self.inner.free(claim, kind, key))
    }

    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Reading<()> {
        at_once(self.inner.replace_catalog(tree, at, rows))
    }

    fn blob(&self, blob: &BlobRef) -> Reading<Option<Vec<u8>>> {
        at_once(self.inner.blob(blob))
    }

    fn remove(&self, tree: TreeId, shared: Shared) -> Reading<()> {
        at_once(self.inner.remove(tree, shared))
    }
}

/// The simulated clock advances while nothing is runnable, so an answer from another thread must not be awaited.
fn at_once<T: Send + 'static>(answered: Reading<T>) -> Reading<T> {
    Box::pin(std::future::ready(answered.wait()))
}

fn away() -> JournalFault {
    JournalFault::Unavailable { reason: "the journal is away".to_owned() }
}

fn last(append: &Append) -> Seq {
    append.end()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
