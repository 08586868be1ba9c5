//! The hub of a tree: takes events when they are durable and puts them on the lines of those who asked for them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spinney_kernel::id::{Correlation, Seq};
use spinney_kernel::trace::Trace;
use tokio::sync::Notify;

use super::delta::{Delta, Deltas};
use super::index::Index;
use super::line::Line;
use super::{Overflow, Sight};
use crate::tree::Told;

/// Where the watchers of one running tree meet.
pub(crate) struct Hub {
    inner: Mutex<Inner>,
    /// Everybody who watches, live or not.
    watchers: AtomicUsize,
    /// Whether there is a trace that goes on: whoever comes next need not read the journal for one.
    is_warm: AtomicBool,
    /// The last durable event.
    published: AtomicU64,
    /// Something became durable, or nothing will.
    moved: Notify,
    /// A line that held the tree up may have room.
    freed: Notify,
    pub(super) deltas: Deltas,
    /// How many correlations were drawn.
    drawn: AtomicU64,
}

struct Inner {
    live: Index,
    /// Those of them that the tree waits for.
    patient: BTreeMap<u64, Arc<Line>>,
    /// The trace as of the last durable event, since somebody went live.
    trace: Option<Trace>,
    next_id: u64,
    is_over: bool,
}

/// Whether a watcher may go live.
pub(super) enum Attached {
    /// It is: the tree writes to its line.
    Live(u64),
    /// More became durable meanwhile.
    NotYet,
    /// Nothing more will come.
    Over,
}

impl Hub {
    pub(crate) fn new(published: Seq) -> Self {
        let inner = Inner {
            live: Index::default(),
            patient: BTreeMap::new(),
            trace: None,
            next_id: 0,
            is_over: false,
        };
        Self {
            inner: Mutex::new(inner),
            watchers: AtomicUsize::new(0),
            is_warm: AtomicBool::new(false),
            published: AtomicU64::new(published.0),
            moved: Notify::new(),
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
    pub(crate) fn publish(&self, told: Vec<Told>, end: Seq) {
        let mut inner = self.inner();
        inner.put(self.published(), told, end);
        self.is_warm.store(inner.trace.is_some(), Ordering::Release);
        // Under the lock: whoever goes live sees either all of it or none.
        self.published.store(end.0, Ordering::Release);
        drop(inner);
        self.moved.notify_waiters();
    }

    /// Nothing more will come.
    pub(crate) fn end(&self) {
        let mut inner = self.inner();
        inner.is_over = true;
        let lines: Vec<Arc<Line>> = inner.live.all().map(|(_, line)| Arc::clone(line)).collect();
        drop(inner);
        lines.iter().for_each(|line| line.moved.notify_one());
        self.moved.notify_waiters();
    }

    /// Waits until there is something after `seen`, or nothing more will come; says how far it is.
    pub(crate) async fn past(&self, seen: Seq) -> Seq {
        loop {
            // Registered before looking, so that nothing in between is missed.
            let moved = self.moved.notified();
            let is_over = self.inner().is_over;
            let published = self.published();
            if published > seen || is_over {
                return published;
            }
            moved.await;
        }
    }

    /// Whether a watcher that the tree waits for has no room.
    pub(crate) fn is_held(&self) -> bool {
        self.is_watched() && self.inner().holding().next().is_some()
    }

    /// Waits until nobody holds the tree up. Whoever does so for too long is disconnected.
    pub(crate) async fn released(&self) {
        let freed = self.freed.notified();
        let Some(patience) = self.inner().holding().map(|(_, _, patience)| patience).min() else { return };
        if tokio::time::timeout(patience, freed).await.is_err() {
            let mut inner = self.inner();
            let slow: Vec<(u64, Arc<Line>)> =
                inner.holding().map(|(id, line, _)| (id, Arc::clone(line))).collect();
            let (at, trace) = (self.published(), inner.trace.clone().unwrap_or_default());
            for (id, line) in slow {
                inner.remove(id, &line);
                line.leave(at, &trace);
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
        self.watchers.fetch_sub(1, Ordering::AcqRel);
    }

    /// A line is live no more.
    pub(super) fn detach(&self, id: u64, line: &Line) {
        self.inner().remove(id, line);
        // It may have held the tree up.
        self.freed.notify_one();
    }

    /// Somebody took an event from a full line.
    pub(super) fn free(&self) {
        self.freed.notify_one();
    }

    /// Lets a watcher go live that has read everything up to `seen`.
    pub(super) fn attach(&self, line: &Arc<Line>, seen: Seq, trace: &Trace) -> Attached {
        let mut inner = self.inner();
        if self.published() != seen {
            return Attached::NotYet;
        }
        if inner.is_over {
            return Attached::Over;
        }
        inner.trace.get_or_insert_with(|| trace.clone());
        self.is_warm.store(true, Ordering::Release);
        Attached::Live(inner.insert(line))
    }

    /// Lets a watcher go live that wants only what is to come, if the hub knows who is who.
    pub(super) fn attach_now(&self, line: &Arc<Line>) -> Option<u64> {
        let mut inner = self.inner();
        let may = inner.trace.is_some() && !inner.is_over && line.watch.after >= self.published();
        may.then(|| inner.insert(line))
    }

    /// Whether nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        self.inner().is_over
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Puts events on the lines that want them.
    fn put(&mut self, before: Seq, told: Vec<Told>, end: Seq) {
        // Without one nobody is live.
        let Some(mut trace) = self.trace.take() else { return };
        let is_whole = told.len() as u64 == end.0.saturating_sub(before.0);
        if !is_whole {
            // Some of it was decided before anybody watched.
            return self.send_away(before, &trace);
        }
        for told in told {
            let (seq, hop) = (told.seq, trace.take(told.at, &told.event));
            let sight = Arc::new(Sight { told, hop });
            let is_full = |(_, line): &(u64, &Arc<Line>)| {
                !line.put(&sight) && !matches!(line.watch.overflow, Overflow::Wait(_))
            };
            let full: Vec<(u64, Arc<Line>)> =
                self.live.wanting(&sight).filter(is_full).map(|(id, line)| (id, Arc::clone(line))).collect();
            for (id, line) in full {
                self.remove(id, &line);
                line.leave(seq, &trace);
            }
        }
        self.trace = Some(trace);
    }

    /// Everybody reads the journal from here on, and comes back.
    fn send_away(&mut self, at: Seq, trace: &Trace) {
        self.live.all().for_each(|(_, line)| line.fall_behind(at, trace));
        self.live.clear();
        self.patient.clear();
    }

    fn insert(&mut self, line: &Arc<Line>) -> u64 {
        self.next_id += 1;
        line.go_live();
        self.live.insert(self.next_id, Arc::clone(line));
        if let Overflow::Wait(_) = line.watch.overflow {
            self.patient.insert(self.next_id, Arc::clone(line));
        }
        self.next_id
    }

    fn remove(&mut self, id: u64, line: &Line) {
        self.live.remove(id, &line.watch);
        self.patient.remove(&id);
    }

    /// The lines that hold the tree up, and for how long they may.
    fn holding(&self) -> impl Iterator<Item = (u64, &Arc<Line>, Duration)> {
        self.patient.iter().filter_map(|(id, line)| match line.watch.overflow {
            Overflow::Wait(patience) if line.is_full() => Some((*id, line, patience)),
            Overflow::Wait(_) | Overflow::DropDeltas | Overflow::Disconnect => None,
        })
    }
}

/// Ends the hub when its tree is no longer run, however that came about.
pub(crate) struct EndOnDrop(pub(crate) Arc<Hub>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}
