//! The gate: a decision's effects and answers may leave the process only when its events are durable.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use spinney_journal::{Append, ChainHash, Head, Journal, JournalFault};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Seq, Time, TreeId};
use spinney_kernel::rules::request::Reply;
use tokio::sync::oneshot;

use super::outage::{Outage, durable};
use super::prepared::Prepared;

/// Most batches of one tree that are being written.
pub(super) const IN_FLIGHT_MAX: usize = 256;

/// Capacity to keep for waiting items.
const HELD_KEPT: usize = 64;

/// Something that waits for its events to be durable.
pub(super) enum Held {
    Effect(Prepared),
    Answer(oneshot::Sender<Result<Reply, Refusal>>, Result<Reply, Refusal>),
    TreeSnapshot(oneshot::Sender<super::TreeSnapshot>, Box<super::TreeSnapshot>),
}

/// Where the journal's confirmations arrive. Only the furthest counts: an append's predecessors are durable before
/// it.
#[derive(Clone)]
pub(super) struct Confirmations(Arc<Mutex<Arrivals>>);

struct Arrivals {
    last: Confirmed,
    /// Appends that are not answered yet.
    open: usize,
    /// Whether it was not taken yet.
    is_new: bool,
    waits: Option<Waker>,
}

impl Confirmations {
    fn new(start: Confirmed) -> Self {
        Self(Arc::new(Mutex::new(Arrivals { last: start, open: 0, is_new: false, waits: None })))
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

    /// The answer to an append that is about to be sent.
    fn expect(&self, seq: Seq) -> Confirmation {
        self.arrivals().open += 1;
        Confirmation { confirmations: self.clone(), seq, is_sent: false }
    }

    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts from here again, with the appends that are sent from now on.
    fn restart(&self, (seq, hash): (Seq, Option<ChainHash>)) {
        let mut arrivals = self.arrivals();
        arrivals.last = Confirmed { seq, hash, fault: None };
        arrivals.is_new = false;
    }

    fn take(&self, seq: Seq, result: Result<ChainHash, JournalFault>) {
        let mut arrivals = self.arrivals();
        arrivals.open -= 1;
        let last = &mut arrivals.last;
        match result {
            // A confirmation that overtook another counts for both: an append names its predecessor.
            Ok(hash) if last.fault.is_none() && seq > last.seq => (last.seq, last.hash) = (seq, Some(hash)),
            Ok(_) => {}
            // What follows it is stale for its sake.
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

/// The journal can be reached again.
pub(super) struct JournalBack {
    /// When it could not be reached any more.
    pub(super) since: Time,
    /// How far it has confirmed.
    pub(super) seq: Seq,
    pub(super) hash: Option<ChainHash>,
}

/// Waiting items in order, each until an event is durable.
pub(super) struct Gate {
    journal: Arc<dyn Journal>,
    held: VecDeque<(Seq, Held)>,
    /// What is not durable yet, oldest first.
    in_flight: VecDeque<Append>,
    confirmations: Confirmations,
    /// While it lasts, nothing is sent to the journal.
    outage: Option<Outage>,
}

impl Gate {
    pub(super) fn new(journal: Arc<dyn Journal>, start: Confirmed) -> Self {
        let confirmations = Confirmations::new(start);
        Self { journal, held: VecDeque::new(), in_flight: VecDeque::new(), confirmations, outage: None }
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
        self.in_flight.push_back(append.clone());
        if self.outage.is_none() {
            self.send(append);
        }
    }

    fn send(&self, append: Append) {
        let before = self.confirmations.is_awake(append.after);
        let confirmation = self.confirmations.expect(append.end());
        self.journal.append(Append { before, ..append }, Box::new(move |result| confirmation.send(result)));
    }

    /// A batch that cannot be written.
    pub(super) fn fail(&self, end: Seq, fault: JournalFault) {
        self.confirmations.expect(end).send(Err(fault));
    }

    pub(super) const fn outage(&self) -> Option<&Outage> {
        self.outage.as_ref()
    }

    /// The journal cannot be reached: keeps everything, and asks it until it answers.
    pub(super) fn wait(&mut self, tree: TreeId, since: Time) {
        let outage = self.outage.get_or_insert(Outage::new(since));
        if self.confirmations.arrivals().open == 0 && !outage.is_asking() {
            outage.ask(&self.journal, tree);
        }
    }

    /// What the journal answers; forever pending if it is not asked.
    pub(super) async fn answer(&mut self) -> Result<Option<Head>, JournalFault> {
        match &mut self.outage {
            Some(outage) => outage.answer().await,
            None => std::future::pending().await,
        }
    }

    /// Continues where the journal ends, if it answered, and sends the rest again. Asks again if it did not.
    pub(super) fn answered(
        &mut self,
        tree: TreeId,
        answer: Result<Option<Head>, JournalFault>,
    ) -> Result<Option<JournalBack>, JournalFault> {
        let Some(outage) = &mut self.outage else { return Ok(None) };
        let head = match answer {
            Ok(head) => head,
            Err(fault) if fault.can_be_retried() => {
                outage.ask(&self.journal, tree);
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        };
        let Confirmed { seq, hash, .. } = self.confirmations.arrivals().last.clone();
        let since = outage.since;
        self.reach(seq);
        let durable = durable(tree, (seq, hash), &self.in_flight, head.as_ref())?;
        self.outage = None;
        self.confirmations.restart(durable);
        self.reach(durable.0);
        self.in_flight.iter().cloned().for_each(|append| self.send(append));
        let (seq, hash) = durable;
        Ok(Some(JournalBack { since, seq, hash }))
    }

    /// Holds an item until the event is durable.
    pub(super) fn hold(&mut self, seq: Seq, held: Held) {
        self.held.push_back((seq, held));
    }

    pub(super) fn reach(&mut self, durable: Seq) {
        while self.in_flight.front().is_some_and(|append| append.end() <= durable) {
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
