//! The line to one watcher: what waits for it while it is live, and how it came to be no longer so.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::id::Seq;
use spinney_kernel::trace::Trace;
use tokio::sync::Notify;

use super::{Overflow, Sight, Watch};

/// Between a tree and one watcher.
pub(super) struct Line {
    pub(super) watch: Watch,
    queue: Mutex<Queue>,
    /// Something came, or nothing will.
    pub(super) moved: Notify,
}

struct Queue {
    sights: VecDeque<Arc<Sight>>,
    state: State,
}

/// Whether a tree writes to a line.
pub(super) enum State {
    /// It does.
    Live,
    /// It was too slow: the rest is in the journal, after this event.
    Behind(Seq, Box<Trace>),
    /// It was too slow and wanted to be disconnected then. Also one that has not begun.
    Cut,
}

/// What a watcher finds.
pub(super) enum Found {
    Sight(Arc<Sight>),
    /// Nothing yet.
    Nothing,
    /// Nothing more: read the journal.
    Behind(Seq, Box<Trace>),
    /// Nothing more.
    Cut,
}

impl Line {
    pub(super) fn new(watch: Watch) -> Self {
        let queue = Queue { sights: VecDeque::new(), state: State::Cut };
        Self { watch, queue: Mutex::new(queue), moved: Notify::new() }
    }

    /// From here on a tree writes to it.
    pub(super) fn go_live(&self) {
        self.queue().state = State::Live;
    }

    /// Puts an event down; says whether there is room for another.
    pub(super) fn put(&self, sight: &Arc<Sight>) -> bool {
        let mut queue = self.queue();
        queue.sights.push_back(Arc::clone(sight));
        let has_room = queue.sights.len() < self.watch.room();
        drop(queue);
        self.moved.notify_one();
        has_room
    }

    /// Whether it holds its tree up.
    pub(super) fn is_full(&self) -> bool {
        self.queue().sights.len() >= self.watch.room()
    }

    /// From here on nothing is put down. Whoever did not want to be disconnected finds the rest in the journal.
    pub(super) fn leave(&self, at: Seq, trace: &Trace) {
        self.queue().state = match self.watch.overflow {
            Overflow::DropDeltas => State::Behind(at, Box::new(trace.clone())),
            Overflow::Wait(_) | Overflow::Disconnect => State::Cut,
        };
        self.moved.notify_one();
    }

    /// From here on nothing is put down, and all of the rest is in the journal.
    pub(super) fn fall_behind(&self, at: Seq, trace: &Trace) {
        self.queue().state = State::Behind(at, Box::new(trace.clone()));
        self.moved.notify_one();
    }

    /// The next event, and whether a tree may have waited for that.
    pub(super) fn take(&self) -> (Found, bool) {
        let mut queue = self.queue();
        if let Some(sight) = queue.sights.pop_front() {
            let waits = matches!(self.watch.overflow, Overflow::Wait(_));
            return (Found::Sight(sight), waits && queue.sights.len() + 1 == self.watch.room());
        }
        let found = match std::mem::replace(&mut queue.state, State::Cut) {
            State::Live => {
                queue.state = State::Live;
                Found::Nothing
            }
            State::Behind(at, trace) => Found::Behind(at, trace),
            State::Cut => Found::Cut,
        };
        (found, false)
    }

    /// The place of the next event, if one waits.
    pub(super) fn next_seq(&self) -> Option<Seq> {
        self.queue().sights.front().map(|sight| sight.told.seq)
    }

    /// How many events wait.
    pub(super) fn len(&self) -> usize {
        self.queue().sights.len()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
