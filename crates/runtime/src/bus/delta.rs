//! Deltas: text as models and tools stream it. They are dropped if a watcher is too slow, and never waited for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::context::Origin;
use spinney_kernel::port::model::DeltaKind;
use spinney_kernel::primitives::{AgentId, CallId, Seq};
use tokio::sync::broadcast;

/// Deltas that wait for the slowest watcher.
const DELTAS_MAX: usize = 4_096;

/// A piece of what a model or tool streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The agent: its tree, and ids from the root down.
    pub origin: Arc<Origin>,
    /// The call.
    pub call: CallId,
    /// The attempt; a later attempt voids the text of an earlier one.
    pub attempt: u32,
    /// Whether it is an answer, what the model thinks, or what a tool prints.
    pub kind: DeltaKind,
    /// Its byte offset in the text of its kind.
    pub offset: usize,
    /// The text.
    pub text: String,
    /// The last event before it.
    pub after: Seq,
}

/// The watchers of deltas, of one agent or of all.
pub(super) struct Deltas {
    watched: AtomicUsize,
    channels: Mutex<BTreeMap<Option<AgentId>, Channel>>,
}

struct Channel {
    sender: broadcast::Sender<Arc<Delta>>,
    watchers: usize,
    /// Of the first watcher, which has not come yet; it counts as one.
    first: Option<broadcast::Receiver<Arc<Delta>>>,
}

impl Channel {
    fn new() -> Self {
        Self { sender: broadcast::Sender::new(DELTAS_MAX), watchers: 0, first: None }
    }
}

impl Deltas {
    pub(super) fn new() -> Self {
        Self { watched: AtomicUsize::new(0), channels: Mutex::default() }
    }

    /// Keeps all deltas for the first watcher of all agents, as if it watched already.
    pub(super) fn kept_for_first() -> Self {
        let deltas = Self::new();
        let receiver = deltas.watch(None);
        if let Some(channel) = deltas.channels().get_mut(&None) {
            channel.first = Some(receiver);
        }
        deltas
    }

    pub(super) fn watch(&self, agent: Option<&AgentId>) -> broadcast::Receiver<Arc<Delta>> {
        let mut channels = self.channels();
        let channel = channels.entry(agent.cloned()).or_insert_with(Channel::new);
        if let Some(first) = channel.first.take() {
            return first;
        }
        self.watched.fetch_add(1, Ordering::AcqRel);
        channel.watchers += 1;
        channel.sender.subscribe()
    }

    pub(super) fn leave(&self, agent: Option<&AgentId>) {
        self.watched.fetch_sub(1, Ordering::AcqRel);
        let mut channels = self.channels();
        let key = agent.cloned();
        let Some(channel) = channels.get_mut(&key) else { return };
        channel.watchers -= 1;
        if channel.watchers == 0 {
            channels.remove(&key);
        }
    }

    pub(super) fn are_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire) > 0
    }

    pub(super) fn send(&self, delta: Delta) {
        let delta = Arc::new(delta);
        let channels = self.channels();
        for key in [None, Some(delta.origin.agent().clone())] {
            if let Some(channel) = channels.get(&key) {
                // Without receivers nothing is missed.
                let _ = channel.sender.send(Arc::clone(&delta));
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.channels().len()
    }

    fn channels(&self) -> MutexGuard<'_, BTreeMap<Option<AgentId>, Channel>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
