//! Callers that wait until a tree is written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;
use spinney_journal::{Head, JournalFault, Reading};
use spinney_kernel::primitives::{Seq, TreeId};

#[derive(Default)]
pub(crate) struct Waiting(Mutex<State>);

#[derive(Default)]
struct State {
    /// By tree: the last event that the caller knows.
    waiters: BTreeMap<TreeId, Vec<(Seq, oneshot::Sender<()>)>>,
    is_closed: bool,
}

impl State {
    fn prune(&mut self) {
        self.waiters.retain(|_, waiters| {
            waiters.retain(|(_, waiter)| !waiter.is_canceled());
            !waiters.is_empty()
        });
    }
}

impl Waiting {
    /// Waits until `head` reads one with an event after this one. It is read again after each wake-up.
    pub(crate) fn until(
        self: &Arc<Self>,
        tree: TreeId,
        after: Seq,
        head: impl Fn() -> Reading<Option<Head>> + Send + Sync + 'static,
    ) -> Reading<Head> {
        let waiting = Arc::clone(self);
        Box::pin(async move {
            loop {
                // Before the head is read: what is written after that wakes it.
                let woken = waiting.wait(tree, after);
                let head = head().await?.ok_or(JournalFault::UnknownTree { tree })?;
                if head.seq > after {
                    return Ok(head);
                }
                woken.await.map_err(|_| JournalFault::Closed)?;
            }
        })
    }

    fn wait(&self, tree: TreeId, after: Seq) -> oneshot::Receiver<()> {
        let (waiter, woken) = oneshot::channel();
        let mut state = self.state();
        if !state.is_closed {
            if state.waiters.len().is_power_of_two() {
                state.prune();
            }
            let waiters = state.waiters.entry(tree).or_default();
            waiters.retain(|(_, waiter)| !waiter.is_canceled());
            waiters.push((after, waiter));
        }
        woken
    }

    /// A tree was written or removed.
    pub(crate) fn wake(&self, tree: TreeId) {
        let waiters = self.state().waiters.remove(&tree);
        for (_, waiter) in waiters.into_iter().flatten() {
            // It may wait no more.
            let _ = waiter.send(());
        }
    }

    /// The trees that a caller waits for, each with the earliest event that a caller knows.
    pub(crate) fn trees(&self) -> Vec<(TreeId, Seq)> {
        let mut state = self.state();
        state.prune();
        let earliest = |waiters: &Vec<(Seq, _)>| waiters.iter().map(|(after, _)| *after).min();
        state.waiters.iter().filter_map(|(tree, waiters)| Some((*tree, earliest(waiters)?))).collect()
    }

    /// The journal is closed: no caller waits any longer.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        drop(waiters);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
