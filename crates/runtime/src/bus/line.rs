//! The line to one watcher: the events that wait for it while it is live, and why it is no longer live.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::context::Trace;
use spinney_kernel::primitives::Seq;
use tokio::sync::Notify;

use super::{Overflow, TracedEvent, Watch};

pub(super) struct Line {
    pub(super) watch: Watch,
    queue: Mutex<Queue>,
    /// Something arrived, or nothing more will.
    pub(super) moved: Notify,
}

struct Queue {
    traced_events: VecDeque<Arc<TracedEvent>>,
    state: State,
}

pub(super) enum State {
    Live,
    /// No longer live; it continues here.
    Behind(WatchPosition),
    /// It was too slow and asked to be disconnected. Also the state before it starts.
    Cut,
}

/// The position of a watcher that is not live.
pub(super) enum WatchPosition {
    /// It reads with the others, from the hub's recent events.
    Shared(Seq),
    /// It reads on its own, because it starts before what the hub remembers, and needs its own trace.
    Own(Seq, Box<Trace>),
}

pub(super) enum LineRead {
    Event(Arc<TracedEvent>),
    Nothing,
    /// No longer live; it continues here.
    Behind(WatchPosition),
    Cut,
}

impl Line {
    pub(super) fn new(watch: Watch) -> Self {
        let queue = Queue { traced_events: VecDeque::new(), state: State::Cut };
        Self { watch, queue: Mutex::new(queue), moved: Notify::new() }
    }

    /// The tree writes to it from now on, after these.
    pub(super) fn go_live(&self, traced_events: VecDeque<Arc<TracedEvent>>) {
        *self.queue() = Queue { traced_events, state: State::Live };
    }

    /// Adds an event. Returns whether there is room for another.
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

    /// It is too slow: it is disconnected or goes back to the journal.
    pub(super) fn leave(&self, at: Seq, trace: &Trace) {
        self.turn(match self.watch.overflow {
            Overflow::DropDeltas => State::Behind(WatchPosition::Own(at, Box::new(trace.clone()))),
            Overflow::Wait(_) | Overflow::Disconnect => State::Cut,
        });
    }

    /// It goes back to the journal, not because it was slow.
    pub(super) fn send_away(&self, at: Seq) {
        self.turn(State::Behind(WatchPosition::Shared(at)));
    }

    fn turn(&self, state: State) {
        self.queue().state = state;
        self.moved.notify_one();
    }

    /// The next event, and whether a tree may have waited for the room.
    pub(super) fn take(&self) -> (LineRead, bool) {
        let mut queue = self.queue();
        if let Some(traced) = queue.traced_events.pop_front() {
            let waits = matches!(self.watch.overflow, Overflow::Wait(_));
            return (LineRead::Event(traced), waits && queue.traced_events.len() + 1 == self.watch.room());
        }
        let found = match std::mem::replace(&mut queue.state, State::Cut) {
            State::Live => {
                queue.state = State::Live;
                LineRead::Nothing
            }
            State::Behind(place) => LineRead::Behind(place),
            State::Cut => LineRead::Cut,
        };
        (found, false)
    }

    /// The next waiting event, and whether the line has everything durable.
    pub(super) fn look(&self) -> (Option<Seq>, bool) {
        let queue = self.queue();
        let next = queue.traced_events.front().map(|traced| traced.recorded.seq);
        (next, matches!(queue.state, State::Live))
    }

    pub(super) fn len(&self) -> usize {
        self.queue().traced_events.len()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
