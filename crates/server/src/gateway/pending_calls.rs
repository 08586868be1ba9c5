//! Where the two sides of a call meet: the connection of the program, which waits for permission to send, and the model
//! call that the tree starts. Either side may come first. The tree's own events say why a call waits and how it ended.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spinney_kernel::port::model::{AttemptError, ModelAnswer};
use spinney_kernel::primitives::CallId;
use spinney_kernel::record::{Outcome, WaitReason};
use tokio::sync::{oneshot, watch};

/// The calls of outside programs in one tree.
#[derive(Debug, Default)]
pub struct PendingCalls {
    slots: Mutex<BTreeMap<CallId, Slot>>,
}

/// Permission to send a call, with the hold behind it.
#[derive(Debug)]
pub(super) struct Permit {
    pub(super) output_cap: u64,
    /// How the call ended. Dropping it without a word means that it is unknown.
    pub(super) end: oneshot::Sender<CallReport>,
}

/// How a call ended, as the tree records it.
pub(super) type CallReport = Result<ModelAnswer, AttemptError>;

/// What the tree's events say about a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum CallStatus {
    /// It was asked for.
    #[default]
    Asked,
    Waiting(WaitReason),
    Started,
    Ended(Box<Outcome>),
}

/// A call whose connection waits.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) permit: oneshot::Receiver<Permit>,
    pub(super) status: watch::Receiver<CallStatus>,
}

#[derive(Debug)]
struct Slot {
    status: watch::Sender<CallStatus>,
    /// Permission that came before its connection asked for it.
    arrived: Option<Permit>,
    /// The connection that waits for permission.
    waiting: Option<oneshot::Sender<Permit>>,
    /// Whether the connection's side is over.
    is_left: bool,
    /// Whether anything was sent to the provider.
    is_sent: bool,
}

impl Default for Slot {
    fn default() -> Self {
        let (status, _) = watch::channel(CallStatus::Asked);
        Self { status, arrived: None, waiting: None, is_left: false, is_sent: false }
    }
}

impl PendingCalls {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tree starts a call. Returns how it will end.
    pub(super) fn start(&self, call: CallId, output_cap: u64) -> oneshot::Receiver<CallReport> {
        let (end, ended) = oneshot::channel();
        let permit = Permit { output_cap, end };
        let mut slots = self.slots();
        let slot = slots.entry(call).or_default();
        match slot.waiting.take() {
            Some(waiting) => {
                // A connection that is gone drops it, and the call ends with nothing sent.
                let _ = waiting.send(permit);
            }
            None => slot.arrived = Some(permit),
        }
        ended
    }

    /// A connection waits for a call that it asked for.
    pub(super) fn expect(&self, call: CallId) -> Expected {
        let (waiting, permit) = oneshot::channel();
        let mut slots = self.slots();
        let slot = slots.entry(call).or_default();
        match slot.arrived.take() {
            Some(arrived) => drop(waiting.send(arrived)),
            None => slot.waiting = Some(waiting),
        }
        Expected { permit, status: slot.status.subscribe() }
    }

    /// The request is about to be sent: from now on it may be billed. False if the tree has ended the call already, and
    /// may have booked nothing for it: then it must not be sent.
    #[must_use]
    pub(super) fn sent(&self, call: CallId, end: &oneshot::Sender<CallReport>) -> bool {
        if let Some(slot) = self.slots().get_mut(&call) {
            slot.is_sent = true;
        }
        // In this order: the tree drops its end first, and looks at what was sent then.
        !end.is_closed()
    }

    pub(super) fn is_sent(&self, call: CallId) -> bool {
        self.slots().get(&call).is_some_and(|slot| slot.is_sent)
    }

    /// The connection's side is over.
    pub(super) fn leave(&self, call: CallId) {
        let mut slots = self.slots();
        // Its events may not be here yet.
        let slot = slots.entry(call).or_default();
        slot.is_left = true;
        if matches!(*slot.status.borrow(), CallStatus::Ended(_)) {
            slots.remove(&call);
        }
    }

    /// An event of the tree about a call. Calls of earlier processes have no connection here.
    pub(super) fn update(&self, call: CallId, status: CallStatus) {
        let mut slots = self.slots();
        let is_new = status == CallStatus::Asked;
        if is_new {
            slots.entry(call).or_default();
            return;
        }
        let Some(slot) = slots.get_mut(&call) else { return };
        let is_over = matches!(status, CallStatus::Ended(_)) && slot.is_left;
        slot.status.send_replace(status);
        if is_over {
            slots.remove(&call);
        }
    }

    /// How many calls are known here.
    #[must_use]
    pub fn count(&self) -> usize {
        self.slots().len()
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<CallId, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: CallId = CallId(7);

    /// What the tree ends between its start and the moment before it is sent is booked at nothing, so it does not leave.
    #[tokio::test]
    async fn a_call_that_was_ended_before_it_was_sent_is_not_sent() {
        let pending_calls = PendingCalls::new();
        let ended = pending_calls.start(CALL, 10);
        let permit = pending_calls.expect(CALL).permit.await.unwrap();
        drop(ended);
        assert!(!pending_calls.is_sent(CALL));
        assert!(!pending_calls.sent(CALL, &permit.end));
    }

    #[tokio::test]
    async fn a_call_that_is_ended_later_may_be_billed() {
        let pending_calls = PendingCalls::new();
        let ended = pending_calls.start(CALL, 10);
        let permit = pending_calls.expect(CALL).permit.await.unwrap();
        assert!(pending_calls.sent(CALL, &permit.end));
        drop(ended);
        assert!(pending_calls.is_sent(CALL));
    }
}
