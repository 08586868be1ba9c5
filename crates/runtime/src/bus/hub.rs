//! The hub of a tree: takes durable events and puts them on the lines of the watchers that asked for them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_journal::{Entry, Journal, JournalFault};
use spinney_kernel::primitives::{Correlation, Seq, TreeId};
use tokio::sync::Notify;

use super::delta::{Delta, Deltas};
use super::index::Index;
use super::line::Line;
use super::recent::RecentEvents;
use super::{Overflow, TracedEvent};
use super::{RecordedEvent, recorded_events};

/// Batches per read.
const PAGE: usize = 256;

/// The watchers of one running tree.
pub(crate) struct Hub {
    tree: TreeId,
    journal: Arc<dyn Journal>,
    inner: Mutex<Inner>,
    /// All watchers, live or not.
    watchers: AtomicUsize,
    /// Whether recent events are kept, so a new watcher need not read the journal.
    is_warm: AtomicBool,
    /// The last durable event.
    published: AtomicU64,
    /// A page was read into the recent events, or could not be.
    read: Notify,
    /// A line that the tree waited for may have room.
    freed: Notify,
    pub(super) deltas: Deltas,
    /// Number of correlation ids generated.
    drawn: AtomicU64,
}

struct Inner {
    /// Lines are live only while the recent events include everything durable.
    live: Index,
    recent_events: RecentEvents,
    /// Whether a page is being read into it.
    is_reading: bool,
    is_over: bool,
}

/// How a watcher continues.
pub(super) enum Joined {
    /// Live: the tree writes to its line, which already has what it missed.
    Live(u64),
    /// With these, up to an event. Then it asks again.
    Partly(Seq, VecDeque<Arc<TracedEvent>>),
    /// It starts before what the hub remembers.
    Beyond,
    /// With these. Nothing more will come.
    Over(VecDeque<Arc<TracedEvent>>),
}

impl Hub {
    pub(crate) fn new(tree: TreeId, journal: Arc<dyn Journal>, published: Seq) -> Self {
        let inner = Inner {
            live: Index::default(),
            recent_events: RecentEvents::default(),
            is_reading: false,
            is_over: false,
        };
        Self {
            tree,
            journal,
            inner: Mutex::new(inner),
            watchers: AtomicUsize::new(0),
            is_warm: AtomicBool::new(false),
            published: AtomicU64::new(published.0),
            read: Notify::new(),
            freed: Notify::new(),
            deltas: Deltas::new(),
            drawn: AtomicU64::new(0),
        }
    }

    /// Keeps all text for the first watcher of all agents.
    pub(crate) fn with_first_text(mut self) -> Self {
        self.deltas = Deltas::kept_for_first();
        self
    }

    /// Whether there is or was a watcher: only then are events kept.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Acquire) > 0 || self.is_warm.load(Ordering::Acquire)
    }

    pub(crate) fn published(&self) -> Seq {
        Seq(self.published.load(Ordering::Acquire))
    }

    /// Everything up to `end` is durable. `recorded` has the events since the last call, if there was a watcher then.
    pub(crate) fn publish(&self, recorded: Vec<RecordedEvent>, end: Seq) {
        let mut inner = self.inner();
        if !inner.hear(recorded, end) {
            self.is_warm.store(false, Ordering::Release);
        }
        // Under the lock, so a watcher that goes live sees all of it or nothing.
        self.published.store(end.0, Ordering::Release);
    }

    pub(crate) fn end(&self) {
        let mut inner = self.inner();
        inner.is_over = true;
        inner.live.all().for_each(|line| line.moved.notify_one());
        drop(inner);
        self.forget();
    }

    /// Whether a watcher that the tree waits for has no room.
    pub(crate) fn is_held(&self) -> bool {
        self.is_watched() && self.inner().live.holding().next().is_some()
    }

    /// Waits until no watcher holds the tree up. A watcher that takes too long is disconnected.
    pub(crate) async fn released(&self) {
        let freed = self.freed.notified();
        let Some(patience) = self.inner().live.holding().map(|(_, _, patience)| patience).min() else {
            return;
        };
        if tokio::time::timeout(patience, freed).await.is_err() {
            let Inner { live, recent_events, .. } = &mut *self.inner();
            let slow: Vec<(u64, Arc<Line>)> =
                live.holding().map(|(id, line, _)| (id, Arc::clone(line))).collect();
            for (id, line) in slow {
                live.remove(id, &line.watch);
                line.leave(recent_events.seen(), recent_events.trace());
            }
        }
    }

    /// Number of watchers, and of keys in the index.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.watchers.load(Ordering::Acquire), self.inner().live.len() + self.deltas.len())
    }

    /// Delivers text of a model.
    pub(crate) fn say(&self, delta: impl FnOnce(Seq) -> Delta) {
        if self.deltas.are_watched() {
            self.deltas.send(delta(self.published()));
        }
    }

    /// A correlation id that is unique in the tree: its position, and a count since it was started.
    pub(crate) fn draw_correlation(&self) -> Correlation {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        Correlation::drawn(self.published(), drawn)
    }

    pub(super) fn enter(&self) {
        self.watchers.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn leave(&self) {
        if self.watchers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.forget();
        }
    }

    pub(super) fn detach(&self, id: u64, line: &Line) {
        self.inner().live.remove(id, &line.watch);
        // It may have held the tree up.
        self.freed.notify_one();
    }

    /// An event was taken from a full line.
    pub(super) fn free(&self) {
        self.freed.notify_one();
    }

    /// Continues a watcher that has everything up to `place`. It goes live if what it missed fits its room; one that
    /// is far behind is not yet judged by its speed.
    pub(super) fn join(&self, line: &Arc<Line>, place: Seq) -> Joined {
        let mut inner = self.inner();
        let Some(recent) = inner.recent_events.after(place) else { return Joined::Beyond };
        let missed: VecDeque<Arc<TracedEvent>> =
            recent.filter(|traced| line.watch.wants(traced)).cloned().collect();
        let is_current = inner.recent_events.seen() == self.published();
        if is_current && inner.is_over {
            return Joined::Over(missed);
        }
        if !is_current || missed.len() >= line.watch.room() {
            return Joined::Partly(inner.recent_events.seen(), missed);
        }
        self.is_warm.store(true, Ordering::Release);
        line.go_live(missed);
        Joined::Live(inner.live.insert(line))
    }

    /// Reads a page of the journal if the recent events end at `seen`. Concurrent callers wait for the same page. The
    /// read completes even if its callers are gone; if it fails, the next caller tries again.
    ///
    /// # Errors
    /// The journal's fault.
    pub(super) async fn read_on(self: &Arc<Self>, seen: Seq) -> Result<(), JournalFault> {
        loop {
            // Registered before checking, so no notification is missed.
            let read = self.read.notified();
            let page = {
                let mut inner = self.inner();
                if inner.recent_events.seen() > seen {
                    return Ok(());
                }
                let was_reading = std::mem::replace(&mut inner.is_reading, true);
                (!was_reading).then(|| Page(Arc::clone(self)))
            };
            let Some(page) = page else {
                read.await;
                continue;
            };
            // In a separate task: the caller may be dropped, and others wait for the page.
            let page = tokio::spawn(page.read());
            return page.await.unwrap_or(Err(JournalFault::Closed));
        }
    }

    pub(super) async fn page(&self, after: Seq) -> Result<Vec<Entry>, JournalFault> {
        self.journal.read(self.tree, after, PAGE).await
    }

    /// The fault of a journal that lacks the event after `after`.
    pub(super) fn damaged(&self, after: Seq) -> JournalFault {
        let reason = "an event that was confirmed is not there".to_owned();
        JournalFault::Damaged { tree: self.tree, after: after.0, reason }
    }

    pub(super) fn is_over(&self) -> bool {
        self.inner().is_over
    }

    /// Drops everything once the tree has ended and no watcher is left.
    fn forget(&self) {
        let mut inner = self.inner();
        if inner.is_over && !inner.is_reading && self.watchers.load(Ordering::Acquire) == 0 {
            inner.recent_events = RecentEvents::default();
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Adds what became durable up to `end`. Returns whether the recent events have all of it.
    fn hear(&mut self, recorded: Vec<RecordedEvent>, end: Seq) -> bool {
        self.recent_events.trim();
        recorded.into_iter().for_each(|recorded| self.deliver(recorded));
        let is_current = self.recent_events.seen() == end;
        if !is_current {
            // Some of it was decided before there was a watcher: all of them read it from the journal and come back.
            self.live.all().for_each(|line| line.send_away(self.recent_events.seen()));
            self.live.clear();
        }
        is_current
    }

    /// Puts an event on the lines that want it, if it is the next one.
    fn deliver(&mut self, recorded: RecordedEvent) {
        let Self { live, recent_events, .. } = self;
        let Some(traced) = recent_events.take(recorded) else { return };
        let is_full = |(_, line): &(u64, &Arc<Line>)| {
            !line.put(&traced) && !matches!(line.watch.overflow, Overflow::Wait(_))
        };
        let full: Vec<(u64, Arc<Line>)> =
            live.wanting(&traced).filter(is_full).map(|(id, line)| (id, Arc::clone(line))).collect();
        for (id, line) in full {
            live.remove(id, &line.watch);
            line.leave(recent_events.seen(), recent_events.trace());
        }
    }
}

/// A page that is being read. There is never more than one.
struct Page(Arc<Hub>);

impl Page {
    async fn read(self) -> Result<(), JournalFault> {
        let hub = &self.0;
        let after = hub.inner().recent_events.seen();
        let page = hub.page(after).await?;
        hub.inner().recent_events.trim();
        // Batch by batch, so the tree need not wait for the whole page.
        for entry in page {
            let mut inner = hub.inner();
            let (seen, known) = (inner.recent_events.seen(), hub.published());
            // Events that are not confirmed yet may be readable already; they are delivered once they are confirmed.
            let new = |recorded: &RecordedEvent| recorded.seq > seen && recorded.seq <= known;
            recorded_events(entry).filter(new).for_each(|recorded| inner.deliver(recorded));
        }
        let mut inner = hub.inner();
        while let Some(recorded) = inner.recent_events.held() {
            inner.deliver(recorded);
        }
        let has_moved = inner.recent_events.seen() > after;
        drop(inner);
        if has_moved { Ok(()) } else { Err(hub.damaged(after)) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.0.inner().is_reading = false;
        self.0.read.notify_waiters();
        self.0.forget();
    }
}

/// Ends the hub when its tree is no longer run, for any reason.
pub(crate) struct EndOnDrop(pub(crate) Arc<Hub>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}
