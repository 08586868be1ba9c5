//! Deltas: text as models say it, live. They are dropped where nobody takes them fast enough, and never waited for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_kernel::context::Origin;
use spinney_kernel::words::{AgentId, CallId, Seq};
use tokio::sync::broadcast;

/// Deltas that wait for the slowest of their watchers.
const DELTAS_MAX: usize = 4_096;

/// A piece of what a model says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Whose model: the tree, and ids from the root down.
    pub origin: Arc<Origin>,
    /// In which call.
    pub call: CallId,
    /// In which attempt at it; a later attempt makes void what an earlier one said.
    pub attempt: u32,
    /// Where in the answer it begins, in bytes.
    pub offset: usize,
    /// What it says.
    pub text: String,
    /// It was said after this event.
    pub after: Seq,
}

/// Those who watch deltas, of one agent or of all.
pub(super) struct Deltas {
    watched: AtomicUsize,
    channels: Mutex<BTreeMap<Option<AgentId>, Channel>>,
}

struct Channel {
    sender: broadcast::Sender<Arc<Delta>>,
    watchers: usize,
}

impl Deltas {
    pub(super) fn new() -> Self {
        Self { watched: AtomicUsize::new(0), channels: Mutex::default() }
    }

    pub(super) fn watch(&self, agent: Option<&AgentId>) -> broadcast::Receiver<Arc<Delta>> {
        self.watched.fetch_add(1, Ordering::AcqRel);
        let mut channels = self.channels();
        let channel = channels
            .entry(agent.cloned())
            .or_insert_with(|| Channel { sender: broadcast::Sender::new(DELTAS_MAX), watchers: 0 });
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

    /// Whether anybody watches.
    pub(super) fn are_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire) > 0
    }

    pub(super) fn send(&self, delta: Delta) {
        let delta = Arc::new(delta);
        let channels = self.channels();
        for key in [None, Some(delta.origin.agent().clone())] {
            if let Some(channel) = channels.get(&key) {
                // If nobody is there any more, nobody misses it.
                let _ = channel.sender.send(Arc::clone(&delta));
            }
        }
    }

    /// How many channels there are.
    pub(super) fn len(&self) -> usize {
        self.channels().len()
    }

    fn channels(&self) -> MutexGuard<'_, BTreeMap<Option<AgentId>, Channel>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
