//! A watcher: continues from the hub's recent events, or reads the journal until it gets there. Then it takes events
//! from its line, and returns to the journal whenever it was too slow.

use std::collections::VecDeque;
use std::sync::Arc;

use spinney_journal::JournalFault;
use spinney_kernel::primitives::Seq;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;

use super::delta::Delta;
use super::hub::{Hub, Joined};
use super::line::{Line, LineRead, WatchPosition};
use super::{Overflow, TracedEvent, Watch, WatchFault, WatchItem};
use super::{RecordedEvent, recorded_events};

/// A subscription to the events of a tree. Dropping it unsubscribes.
pub struct Watcher {
    hub: Arc<Hub>,
    line: Arc<Line>,
    mode: Mode,
    /// Events read before it was live and not taken yet.
    read: VecDeque<Arc<TracedEvent>>,
    deltas: Option<broadcast::Receiver<Arc<Delta>>>,
    /// A delta that waits for the event before it.
    delta: Option<Arc<Delta>>,
    /// Dropped deltas that were not reported yet.
    missed: u64,
    seen: Seq,
    count: WatcherCount,
}

/// A watcher's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatcherCount {
    /// Events taken.
    pub events: u64,
    /// Deltas taken.
    pub deltas: u64,
    /// Deltas dropped.
    pub dropped: u64,
}

/// Where its events come from.
enum Mode {
    /// The journal or the hub's recent events, after this position.
    Reading(WatchPosition),
    /// Its line, by its number at the hub.
    Live(u64),
    /// Nothing more will come.
    Over,
}

impl Watcher {
    pub(crate) fn new(hub: Arc<Hub>, watch: Watch) -> Self {
        hub.enter();
        let deltas = watch.deltas.then(|| hub.deltas.watch(watch.agent.as_ref()));
        let (seen, line) = (watch.after, Arc::new(Line::new(watch)));
        let mut watcher = Self {
            hub,
            seen,
            line,
            mode: Mode::Reading(WatchPosition::Shared(seen)),
            read: VecDeque::new(),
            deltas,
            delta: None,
            missed: 0,
            count: WatcherCount::default(),
        };
        watcher.join(seen);
        watcher
    }

    /// The next item; `None` once the tree has ended or is no longer run, and everything was delivered.
    ///
    /// # Errors
    /// If it was too slow and asked to be disconnected, or a fault of the journal. Nothing follows an error.
    pub async fn next(&mut self) -> Option<Result<WatchItem, WatchFault>> {
        loop {
            match self.at_hand() {
                Ok(Some(seen)) => return Some(Ok(seen)),
                Ok(None) => {}
                Err(fault) => return Some(Err(self.cut(fault))),
            }
            match &self.mode {
                Mode::Over => return None,
                Mode::Reading(_) => {
                    if let Err(fault) = self.read_on().await {
                        return Some(Err(self.cut(WatchFault::Journal(fault))));
                    }
                }
                Mode::Live(_) => self.wait().await,
            }
        }
    }

    /// The next event. Skips deltas before it.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn next_event(&mut self) -> Option<Result<Arc<TracedEvent>, WatchFault>> {
        loop {
            match self.next().await? {
                Ok(WatchItem::Event(traced)) => return Some(Ok(traced)),
                Ok(WatchItem::Delta(_) | WatchItem::Missed(_)) => {}
                Err(fault) => return Some(Err(fault)),
            }
        }
    }

    /// The last event that it took. A watcher that starts after it misses nothing and repeats nothing.
    #[must_use]
    pub const fn seen(&self) -> Seq {
        self.seen
    }

    /// Its counters.
    #[must_use]
    pub const fn count(&self) -> WatcherCount {
        self.count
    }

    /// Number of events that wait for it in memory.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.read.len() + self.line.len()
    }

    /// The next item that is available without waiting.
    fn at_hand(&mut self) -> Result<Option<WatchItem>, WatchFault> {
        self.look_for_delta();
        if self.missed > 0 {
            if self.line.watch.overflow == Overflow::Disconnect {
                return Err(WatchFault::TooSlow { seen: self.seen });
            }
            self.count.dropped += self.missed;
            return Ok(Some(WatchItem::Missed(std::mem::take(&mut self.missed))));
        }
        let (on_line, is_live) = self.line.look();
        let event = self.read.front().map(|traced| traced.recorded.seq).or(on_line);
        if let Some(delta) = self.delta.take_if(|delta| is_due(delta, event, &self.mode, is_live)) {
            self.count.deltas += 1;
            return Ok(Some(WatchItem::Delta(delta)));
        }
        let Some(traced) =
            self.read.pop_front().map_or_else(|| self.take_live(), |traced| Ok(Some(traced)))?
        else {
            return Ok(None);
        };
        self.seen = traced.recorded.seq;
        self.count.events += 1;
        Ok(Some(WatchItem::Event(traced)))
    }

    fn take_live(&mut self) -> Result<Option<Arc<TracedEvent>>, WatchFault> {
        let Mode::Live(_) = self.mode else { return Ok(None) };
        let (found, was_full) = self.line.take();
        if was_full {
            self.hub.free();
        }
        match found {
            LineRead::Event(traced) => return Ok(Some(traced)),
            LineRead::Behind(place) => self.turn(Mode::Reading(place)),
            LineRead::Cut => return Err(WatchFault::TooSlow { seen: self.seen }),
            LineRead::Nothing if self.hub.is_over() && self.line.len() == 0 => self.turn(Mode::Over),
            LineRead::Nothing => {}
        }
        Ok(None)
    }

    /// Takes the next delta from its channel, if there is one.
    fn look_for_delta(&mut self) {
        let (None, Some(deltas)) = (&self.delta, &mut self.deltas) else { return };
        match deltas.try_recv() {
            Ok(delta) => self.delta = Some(delta),
            Err(TryRecvError::Lagged(dropped)) => self.missed += dropped,
            Err(TryRecvError::Empty | TryRecvError::Closed) => {}
        }
    }

    /// Continues from the hub's recent events, or with a page of the journal.
    async fn read_on(&mut self) -> Result<(), JournalFault> {
        let Mode::Reading(place) = &self.mode else { return Ok(()) };
        let place = match place {
            WatchPosition::Shared(place) => *place,
            WatchPosition::Own(place, _) => self.seen.max(*place),
        };
        match self.join(place) {
            Some(seen) => self.hub.read_on(seen).await,
            None => self.read_alone().await,
        }
    }

    /// Continues from the hub's recent events. Returns the last event that the hub knows if the hub must read on
    /// first.
    fn join(&mut self, place: Seq) -> Option<Seq> {
        let joined = self.hub.join(&self.line, place);
        let is_own = matches!(self.mode, Mode::Reading(WatchPosition::Own(..)));
        match joined {
            Joined::Live(id) => self.mode = Mode::Live(id),
            Joined::Over(missed) => (self.read, self.mode) = (missed, Mode::Over),
            // It keeps its trace until it is live; otherwise it might have to start over.
            Joined::Partly(..) | Joined::Beyond if is_own => {}
            Joined::Partly(seen, missed) => {
                self.mode = Mode::Reading(WatchPosition::Shared(seen.max(place)));
                self.read = missed;
                return self.read.is_empty().then_some(seen);
            }
            Joined::Beyond => self.mode = Mode::Reading(WatchPosition::Own(Seq(0), Box::default())),
        }
        None
    }

    /// Reads a page for itself, if it reads on its own.
    async fn read_alone(&mut self) -> Result<(), JournalFault> {
        let Mode::Reading(WatchPosition::Own(place, trace)) = &mut self.mode else { return Ok(()) };
        let (after, known) = (*place, self.hub.published());
        if after == known {
            // The hub has not read that far.
            self.mode = Mode::Reading(WatchPosition::Shared(after));
            return Ok(());
        }
        let page = self.hub.page(after).await?;
        // Events that are not confirmed yet may be readable already; they are delivered once they are confirmed.
        let new = |recorded: &RecordedEvent| recorded.seq > after && recorded.seq <= known;
        for recorded in page.into_iter().flat_map(recorded_events).filter(new) {
            *place = recorded.seq;
            let context = trace.take(recorded.at, &recorded.event);
            let traced = TracedEvent { recorded, context };
            if traced.recorded.seq > self.seen && self.line.watch.wants(&traced) {
                self.read.push_back(Arc::new(traced));
            }
        }
        if *place == after { Err(self.hub.damaged(after)) } else { Ok(()) }
    }

    /// Waits for an event or a delta.
    async fn wait(&mut self) {
        let moved = self.line.moved.notified();
        match (&mut self.deltas, &self.delta) {
            (Some(deltas), None) if !self.hub.is_over() => tokio::select! {
                () = moved => {}
                delta = deltas.recv() => match delta {
                    Ok(delta) => self.delta = Some(delta),
                    Err(broadcast::error::RecvError::Lagged(dropped)) => self.missed += dropped,
                    Err(broadcast::error::RecvError::Closed) => self.deltas = None,
                },
            },
            (Some(_) | None, _) => moved.await,
        }
    }

    fn turn(&mut self, mode: Mode) {
        if let Mode::Live(id) = std::mem::replace(&mut self.mode, mode) {
            self.hub.detach(id, &self.line);
        }
    }

    fn cut(&mut self, fault: WatchFault) -> WatchFault {
        self.turn(Mode::Over);
        self.read.clear();
        (self.deltas, self.delta) = (None, None);
        fault
    }
}

/// Whether a delta comes before the next event: not before the event that it follows.
fn is_due(delta: &Delta, event: Option<Seq>, mode: &Mode, is_live: bool) -> bool {
    event.map_or_else(
        || match mode {
            Mode::Live(_) => is_live,
            Mode::Over => true,
            Mode::Reading(WatchPosition::Shared(place) | WatchPosition::Own(place, _)) => {
                *place >= delta.after
            }
        },
        |event| event > delta.after,
    )
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.turn(Mode::Over);
        self.hub.leave();
        if self.line.watch.deltas {
            self.hub.deltas.leave(self.line.watch.agent.as_ref());
        }
    }
}
