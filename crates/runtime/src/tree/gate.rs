//! The gate: a decision's effects and answers may leave the process only when its events are durable.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use spinney_journal::{Append, ChainHash, Journal, JournalFault};
use spinney_kernel::definition::Refusal;
use spinney_kernel::rules::request::Reply;
use spinney_kernel::words::Seq;
use tokio::sync::oneshot;

use super::prepared::Prepared;

/// Most batches of one tree that are being written.
pub(super) const IN_FLIGHT_MAX: usize = 256;

/// Capacity to keep for waiting items.
const HELD_KEPT: usize = 64;

/// Something that waits for its events to be durable.
pub(super) enum Held {
    Effect(Prepared),
    Answer(oneshot::Sender<Result<Reply, Refusal>>, Result<Reply, Refusal>),
    Look(oneshot::Sender<super::Look>, Box<super::Look>),
}

/// Where the journal's confirmations arrive. Only the furthest counts: an append's predecessors are durable before
/// it.
#[derive(Clone)]
pub(super) struct Confirmations(Arc<Mutex<Arrivals>>);

struct Arrivals {
    last: Confirmed,
    /// Whether it was not taken yet.
    is_new: bool,
    waits: Option<Waker>,
}

impl Confirmations {
    fn new(start: Confirmed) -> Self {
        Self(Arc::new(Mutex::new(Arrivals { last: start, is_new: false, waits: None })))
    }

    /// Waits for a confirmation after the last one taken.
    pub(super) fn next(&self) -> impl Future<Output = Confirmed> {
        poll_fn(|context| self.poll(context))
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Confirmed> {
        let mut arrivals = self.arrivals();
        if std::mem::take(&mut arrivals.is_new) {
            return Poll::Ready(arrivals.last.clone());
        }
        match &mut arrivals.waits {
            Some(waits) => waits.clone_from(context.waker()),
            waits @ None => *waits = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// The waiting task is awake and checks again before it sleeps. Returns the hash at an event, if that is the last
    /// durable one.
    fn is_awake(&self, at: Seq) -> Option<ChainHash> {
        let mut arrivals = self.arrivals();
        arrivals.waits = None;
        arrivals.last.hash.filter(|_| arrivals.last.seq == at)
    }

    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, seq: Seq, result: Result<ChainHash, JournalFault>) {
        let mut arrivals = self.arrivals();
        let last = &mut arrivals.last;
        match result {
            // A confirmation that overtook another counts for both: an append names its predecessor.
            Ok(hash) if last.fault.is_none() && seq > last.seq => (last.seq, last.hash) = (seq, Some(hash)),
            Ok(_) => {}
            Err(fault) => drop(last.fault.get_or_insert(fault)),
        }
        arrivals.is_new = true;
        let waits = arrivals.waits.take();
        drop(arrivals);
        if let Some(waits) = waits {
            waits.wake();
        }
    }
}

/// The answer to one append. A journal that drops it unanswered counts as closed.
struct Confirmation {
    confirmations: Confirmations,
    seq: Seq,
    is_sent: bool,
}

impl Confirmation {
    fn send(mut self, result: Result<ChainHash, JournalFault>) {
        self.is_sent = true;
        self.confirmations.take(self.seq, result);
    }
}

impl Drop for Confirmation {
    fn drop(&mut self) {
        if !self.is_sent {
            self.confirmations.take(self.seq, Err(JournalFault::Closed));
        }
    }
}

/// How far the journal has confirmed.
#[derive(Clone, Debug, Default)]
pub(super) struct Confirmed {
    pub(super) seq: Seq,
    pub(super) hash: Option<ChainHash>,
    pub(super) fault: Option<JournalFault>,
}

/// Waiting items in order, each until an event is durable.
pub(super) struct Gate {
    journal: Arc<dyn Journal>,
    held: VecDeque<(Seq, Held)>,
    /// Last events of batches that are being written.
    in_flight: VecDeque<Seq>,
    confirmations: Confirmations,
}

impl Gate {
    pub(super) fn new(journal: Arc<dyn Journal>, start: Confirmed) -> Self {
        let confirmations = Confirmations::new(start);
        Self { journal, held: VecDeque::new(), in_flight: VecDeque::new(), confirmations }
    }

    pub(super) fn confirmations(&self) -> Confirmations {
        self.confirmations.clone()
    }

    pub(super) fn has_room(&self) -> bool {
        self.in_flight.len() < IN_FLIGHT_MAX
    }

    /// Whether everything is durable and released.
    pub(super) fn is_clear(&self) -> bool {
        self.in_flight.is_empty() && self.held.is_empty()
    }

    pub(super) fn append(&mut self, append: Append) {
        let seq = Seq(append.after.0 + append.batch.events.len() as u64);
        self.in_flight.push_back(seq);
        let before = self.confirmations.is_awake(append.after);
        let confirmation = Confirmation { confirmations: self.confirmations.clone(), seq, is_sent: false };
        self.journal.append(Append { before, ..append }, Box::new(move |result| confirmation.send(result)));
    }

    /// Holds an item until the event is durable.
    pub(super) fn hold(&mut self, seq: Seq, held: Held) {
        self.held.push_back((seq, held));
    }

    pub(super) fn reach(&mut self, durable: Seq) {
        while self.in_flight.front().is_some_and(|seq| *seq <= durable) {
            self.in_flight.pop_front();
        }
    }

    /// The next item that may leave now, in order.
    pub(super) fn release(&mut self, durable: Seq) -> Option<Held> {
        if self.held.front().is_some_and(|(seq, _)| *seq <= durable) {
            return self.held.pop_front().map(|(_, held)| held);
        }
        // Free the memory of a large burst.
        if self.held.is_empty() && self.held.capacity() > HELD_KEPT {
            self.held.shrink_to(HELD_KEPT);
        }
        None
    }
}
