//! A watcher: reads the journal until it has caught up, then takes what the tree puts on its line, and goes back to the
//! journal whenever it was too slow.

use std::collections::VecDeque;
use std::sync::Arc;

use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::journal::{Journal, JournalFault};
use spinney_kernel::trace::Trace;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;

use super::delta::Delta;
use super::hub::{Attached, Hub};
use super::line::{Found, Line};
use super::{Overflow, Seen, Sight, Watch, WatchFault};
use crate::tree::{Told, tell};

/// Batches read at once.
const PAGE: usize = 256;

/// Somebody who watches a tree. Dropping it ends that.
pub struct Watcher {
    tree: TreeId,
    journal: Arc<dyn Journal>,
    hub: Arc<Hub>,
    line: Arc<Line>,
    mode: Mode,
    /// What was read from the journal and not taken yet.
    read: VecDeque<Arc<Sight>>,
    deltas: Option<broadcast::Receiver<Arc<Delta>>>,
    /// A delta that was taken from its channel and waits for its event.
    delta: Option<Arc<Delta>>,
    /// Deltas that were dropped and not told of yet.
    missed: u64,
    seen: Seq,
    count: Count,
}

/// What became of what a watcher asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Events that it took.
    pub events: u64,
    /// Deltas that it took.
    pub deltas: u64,
    /// Deltas that were dropped.
    pub dropped: u64,
}

/// Where its events come from.
enum Mode {
    /// The journal, after what the trace has taken in.
    Reading(Seq, Box<Trace>),
    /// Its line, by its number at the hub.
    Live(u64),
    /// Nowhere: nothing more will come.
    Over,
}

impl Watcher {
    pub(crate) fn new(tree: TreeId, journal: Arc<dyn Journal>, hub: Arc<Hub>, watch: Watch) -> Self {
        hub.enter();
        let deltas = watch.deltas.then(|| hub.deltas.watch(watch.agent.as_ref()));
        let (seen, line) = (watch.after, Arc::new(Line::new(watch)));
        let mode = hub.attach_now(&line).map_or_else(|| Mode::Reading(Seq(0), Box::default()), Mode::Live);
        Self {
            tree,
            journal,
            hub,
            seen,
            line,
            mode,
            read: VecDeque::new(),
            deltas,
            delta: None,
            missed: 0,
            count: Count::default(),
        }
    }

    /// What comes next; none once the tree has ended or is no longer run, and everything was seen.
    ///
    /// # Errors
    /// If it was too slow and wanted to be disconnected then, or what the journal says. There is nothing after that.
    pub async fn next(&mut self) -> Option<Result<Seen, WatchFault>> {
        loop {
            match self.at_hand() {
                Ok(Some(seen)) => return Some(Ok(seen)),
                Ok(None) => {}
                Err(fault) => return Some(Err(self.cut(fault))),
            }
            match &self.mode {
                Mode::Over => return None,
                Mode::Reading(..) => {
                    if let Err(fault) = self.read_on().await {
                        return Some(Err(self.cut(WatchFault::Journal(fault))));
                    }
                }
                Mode::Live(_) => self.wait().await,
            }
        }
    }

    /// The last event that it took; whoever watches again after it misses nothing and sees nothing twice.
    #[must_use]
    pub const fn seen(&self) -> Seq {
        self.seen
    }

    /// What became of what it asked for.
    #[must_use]
    pub const fn count(&self) -> Count {
        self.count
    }

    /// How many events wait for it in memory.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.read.len() + self.line.len()
    }

    /// What can be had without waiting.
    fn at_hand(&mut self) -> Result<Option<Seen>, WatchFault> {
        self.look_for_delta();
        if self.missed > 0 {
            if self.line.watch.overflow == Overflow::Disconnect {
                return Err(WatchFault::TooSlow { seen: self.seen });
            }
            self.count.dropped += self.missed;
            return Ok(Some(Seen::Missed(std::mem::take(&mut self.missed))));
        }
        let event = self.read.front().map(|sight| sight.told.seq).or_else(|| self.line.next_seq());
        if let Some(delta) = self.delta.take_if(|delta| is_due(delta, event, &self.mode)) {
            self.count.deltas += 1;
            return Ok(Some(Seen::Delta(delta)));
        }
        let Some(sight) = self.read.pop_front().map_or_else(|| self.take_live(), |sight| Ok(Some(sight)))?
        else {
            return Ok(None);
        };
        self.seen = sight.told.seq;
        self.count.events += 1;
        Ok(Some(Seen::Event(sight)))
    }

    fn take_live(&mut self) -> Result<Option<Arc<Sight>>, WatchFault> {
        let Mode::Live(_) = self.mode else { return Ok(None) };
        let (found, was_full) = self.line.take();
        if was_full {
            self.hub.free();
        }
        match found {
            Found::Sight(sight) => return Ok(Some(sight)),
            Found::Behind(at, trace) => self.turn(Mode::Reading(at, trace)),
            Found::Cut => return Err(WatchFault::TooSlow { seen: self.seen }),
            Found::Nothing if self.hub.is_over() && self.line.len() == 0 => self.turn(Mode::Over),
            Found::Nothing => {}
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

    /// Reads the next page; at the end of it the line goes live.
    async fn read_on(&mut self) -> Result<(), JournalFault> {
        let Mode::Reading(seen, trace) = &mut self.mode else { return Ok(()) };
        let known = self.hub.published();
        if known > *seen {
            let (journal, tree, after) = (Arc::clone(&self.journal), self.tree, *seen);
            let page = tokio::task::spawn_blocking(move || journal.read(tree, after, PAGE));
            let page = page.await.unwrap_or(Err(JournalFault::Closed))?;
            // What is not confirmed yet may be read already; it is told when it is.
            let new = |told: &Told| told.seq > after && told.seq <= known;
            for told in page.into_iter().flat_map(tell).filter(new) {
                *seen = told.seq;
                let hop = trace.take(told.at, &told.event);
                let sight = Sight { told, hop };
                if sight.told.seq > self.seen && self.line.watch.wants(&sight) {
                    self.read.push_back(Arc::new(sight));
                }
            }
            if *seen == after {
                let reason = "an event that was confirmed is not there".to_owned();
                return Err(JournalFault::Damaged { tree, after: after.0, reason });
            }
            return Ok(());
        }
        match self.hub.attach(&self.line, *seen, trace) {
            Attached::Live(id) => self.mode = Mode::Live(id),
            Attached::Over => self.mode = Mode::Over,
            Attached::NotYet => {}
        }
        Ok(())
    }

    /// Waits until something is on the line, or a delta.
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

    /// From here on its events come from elsewhere.
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

/// Whether a delta comes before whatever else there is: not before the event after which it was said.
fn is_due(delta: &Delta, event: Option<Seq>, mode: &Mode) -> bool {
    let before_event = event.is_none_or(|event| event > delta.after);
    before_event
        && match mode {
            Mode::Live(_) | Mode::Over => true,
            Mode::Reading(seen, _) => *seen >= delta.after,
        }
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
