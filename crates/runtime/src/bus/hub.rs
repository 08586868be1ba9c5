//! The hub of a tree: takes events when they are durable and puts them on the lines of those who asked for them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_journal::{Entry, Journal, JournalFault};
use spinney_kernel::words::{Correlation, Seq, TreeId};
use tokio::sync::Notify;

use super::delta::{Delta, Deltas};
use super::index::Index;
use super::line::Line;
use super::recent::RecentEvents;
use super::{Overflow, TracedEvent};
use crate::tree::{RecordedEvent, recorded_events};

/// Batches read at once.
const PAGE: usize = 256;

/// Where the watchers of one running tree meet.
pub(crate) struct Hub {
    tree: TreeId,
    journal: Arc<dyn Journal>,
    inner: Mutex<Inner>,
    /// Everybody who watches, live or not.
    watchers: AtomicUsize,
    /// Whether the story goes on: whoever comes next need not read the journal for it.
    is_warm: AtomicBool,
    /// The last durable event.
    published: AtomicU64,
    /// A page was read into the story, or could not be.
    read: Notify,
    /// A line that held the tree up may have room.
    freed: Notify,
    pub(super) deltas: Deltas,
    /// How many correlations were drawn.
    drawn: AtomicU64,
}

struct Inner {
    /// Nobody is live unless the story has everything that is durable.
    live: Index,
    recent_events: RecentEvents,
    /// Whether a page is being read into it.
    is_reading: bool,
    is_over: bool,
}

/// How a watcher goes on.
pub(super) enum Joined {
    /// It is live: the tree writes to its line, and what it missed is there already.
    Live(u64),
    /// With these, up to an event. Then it asks again.
    Partly(Seq, VecDeque<Arc<TracedEvent>>),
    /// It begins before what the hub remembers.
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

    /// Whether anybody watches or did: only then are events kept for them.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Acquire) > 0 || self.is_warm.load(Ordering::Acquire)
    }

    /// The last durable event.
    pub(crate) fn published(&self) -> Seq {
        Seq(self.published.load(Ordering::Acquire))
    }

    /// Everything up to `end` is durable. `told` is what came since the last time, if somebody watched then already.
    pub(crate) fn publish(&self, recorded: Vec<RecordedEvent>, end: Seq) {
        let mut inner = self.inner();
        if !inner.hear(recorded, end) {
            self.is_warm.store(false, Ordering::Release);
        }
        // Under the lock: whoever goes live sees either all of it or none.
        self.published.store(end.0, Ordering::Release);
    }

    /// Nothing more will come.
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

    /// Waits until nobody holds the tree up. Whoever does so for too long is disconnected.
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

    /// How many watch, and how many places the hub keeps for what they ask for.
    pub(crate) fn count(&self) -> (usize, usize) {
        (self.watchers.load(Ordering::Acquire), self.inner().live.len() + self.deltas.len())
    }

    /// Text that a model says.
    pub(crate) fn say(&self, delta: impl FnOnce(Seq) -> Delta) {
        if self.deltas.are_watched() {
            self.deltas.send(delta(self.published()));
        }
    }

    /// A correlation that nothing in the tree has: by where it stands, and a count since it is run.
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

    /// A line is live no more.
    pub(super) fn detach(&self, id: u64, line: &Line) {
        self.inner().live.remove(id, &line.watch);
        // It may have held the tree up.
        self.freed.notify_one();
    }

    /// Somebody took an event from a full line.
    pub(super) fn free(&self) {
        self.freed.notify_one();
    }

    /// Lets a watcher go on that has everything up to `place`. It goes live if what it missed fits into its room: one
    /// that is still far behind is not yet measured by how fast it is.
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

    /// Brings the story beyond `seen` if it is not, by a page of the journal. Whoever else asks meanwhile waits for the
    /// same page. It is read to its end whatever becomes of those who wait; if it cannot be, the next of them tries.
    ///
    /// # Errors
    /// What the journal says.
    pub(super) async fn read_on(self: &Arc<Self>, seen: Seq) -> Result<(), JournalFault> {
        loop {
            // Registered before looking, so that nothing in between is missed.
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
            // In a task of its own: whoever asked may never look again, and the others wait for it.
            let page = tokio::spawn(page.read());
            return page.await.unwrap_or(Err(JournalFault::Closed));
        }
    }

    /// Batches with events after `after`.
    pub(super) async fn page(&self, after: Seq) -> Result<Vec<Entry>, JournalFault> {
        self.journal.read(self.tree, after, PAGE).await
    }

    /// What the journal of this tree is if an event after `after` is not there.
    pub(super) fn damaged(&self, after: Seq) -> JournalFault {
        let reason = "an event that was confirmed is not there".to_owned();
        JournalFault::Damaged { tree: self.tree, after: after.0, reason }
    }

    /// Whether nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        self.inner().is_over
    }

    /// Once nothing more will come and nobody is there, nothing is kept.
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
    /// Takes in what became durable, up to `end`; says whether the story has all of it.
    fn hear(&mut self, recorded: Vec<RecordedEvent>, end: Seq) -> bool {
        self.recent_events.trim();
        recorded.into_iter().for_each(|recorded| self.tell(recorded));
        let is_current = self.recent_events.seen() == end;
        if !is_current {
            // Some of it was decided before anybody watched: everybody finds it in the journal, and comes back.
            self.live.all().for_each(|line| line.send_away(self.recent_events.seen()));
            self.live.clear();
        }
        is_current
    }

    /// Puts an event on the lines that want it, if it is the next one.
    fn tell(&mut self, recorded: RecordedEvent) {
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

/// A page that is being read into the story. There is never more than one.
struct Page(Arc<Hub>);

impl Page {
    async fn read(self) -> Result<(), JournalFault> {
        let hub = &self.0;
        let after = hub.inner().recent_events.seen();
        let page = hub.page(after).await?;
        hub.inner().recent_events.trim();
        // Batch by batch, so that the tree need not wait for the page.
        for entry in page {
            let mut inner = hub.inner();
            let (seen, known) = (inner.recent_events.seen(), hub.published());
            // What is not confirmed yet may be read already; it is told when it is.
            let new = |recorded: &RecordedEvent| recorded.seq > seen && recorded.seq <= known;
            recorded_events(entry).filter(new).for_each(|recorded| inner.tell(recorded));
        }
        let mut inner = hub.inner();
        while let Some(recorded) = inner.recent_events.held() {
            inner.tell(recorded);
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

/// Ends the hub when its tree is no longer run, however that came about.
pub(crate) struct EndOnDrop(pub(crate) Arc<Hub>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}
