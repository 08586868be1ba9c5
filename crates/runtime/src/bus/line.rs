//! The line to one watcher: what waits for it while it is live, and how it came to be no longer so.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::context::Trace;
use spinney_kernel::words::Seq;
use tokio::sync::Notify;

use super::{Overflow, TracedEvent, Watch};

/// Between a tree and one watcher.
pub(super) struct Line {
    pub(super) watch: Watch,
    queue: Mutex<Queue>,
    /// Something came, or nothing will.
    pub(super) moved: Notify,
}

struct Queue {
    traced_events: VecDeque<Arc<TracedEvent>>,
    state: State,
}

/// Whether a tree writes to a line.
pub(super) enum State {
    /// It does.
    Live,
    /// No more: this is where it goes on.
    Behind(Place),
    /// It was too slow and wanted to be disconnected then. Also one that has not begun.
    Cut,
}

/// How far a watcher is that is not live, and how it goes on.
pub(super) enum Place {
    /// With the others, as the hub's story does.
    Shared(Seq),
    /// By itself, because it begins before what the hub remembers: it needs to know who is who.
    Own(Seq, Box<Trace>),
}

/// What a watcher finds.
pub(super) enum Found {
    Event(Arc<TracedEvent>),
    /// Nothing yet.
    Nothing,
    /// Nothing more: this is where it goes on.
    Behind(Place),
    /// Nothing more.
    Cut,
}

impl Line {
    pub(super) fn new(watch: Watch) -> Self {
        let queue = Queue { traced_events: VecDeque::new(), state: State::Cut };
        Self { watch, queue: Mutex::new(queue), moved: Notify::new() }
    }

    /// From here on a tree writes to it, after these.
    pub(super) fn go_live(&self, traced_events: VecDeque<Arc<TracedEvent>>) {
        *self.queue() = Queue { traced_events, state: State::Live };
    }

    /// Puts an event down; says whether there is room for another.
    pub(super) fn put(&self, traced: &Arc<TracedEvent>) -> bool {
        let mut queue = self.queue();
        queue.traced_events.push_back(Arc::clone(traced));
        let has_room = queue.traced_events.len() < self.watch.room();
        drop(queue);
        self.moved.notify_one();
        has_room
    }

    /// Whether it holds its tree up.
    pub(super) fn is_full(&self) -> bool {
        self.queue().traced_events.len() >= self.watch.room()
    }

    /// It is too slow, and nothing more is put down. Whoever did not want to be disconnected then reads the journal.
    pub(super) fn leave(&self, at: Seq, trace: &Trace) {
        self.turn(match self.watch.overflow {
            Overflow::DropDeltas => State::Behind(Place::Own(at, Box::new(trace.clone()))),
            Overflow::Wait(_) | Overflow::Disconnect => State::Cut,
        });
    }

    /// Nothing more is put down, through no fault of its own.
    pub(super) fn send_away(&self, at: Seq) {
        self.turn(State::Behind(Place::Shared(at)));
    }

    fn turn(&self, state: State) {
        self.queue().state = state;
        self.moved.notify_one();
    }

    /// The next event, and whether a tree may have waited for that.
    pub(super) fn take(&self) -> (Found, bool) {
        let mut queue = self.queue();
        if let Some(traced) = queue.traced_events.pop_front() {
            let waits = matches!(self.watch.overflow, Overflow::Wait(_));
            return (Found::Event(traced), waits && queue.traced_events.len() + 1 == self.watch.room());
        }
        let found = match std::mem::replace(&mut queue.state, State::Cut) {
            State::Live => {
                queue.state = State::Live;
                Found::Nothing
            }
            State::Behind(place) => Found::Behind(place),
            State::Cut => Found::Cut,
        };
        (found, false)
    }

    /// The next event, if one waits, and whether all that is durable is on it.
    pub(super) fn look(&self) -> (Option<Seq>, bool) {
        let queue = self.queue();
        let next = queue.traced_events.front().map(|traced| traced.recorded.seq);
        (next, matches!(queue.state, State::Live))
    }

    /// How many events wait.
    pub(super) fn len(&self) -> usize {
        self.queue().traced_events.len()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
