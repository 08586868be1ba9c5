//! One call at a time for an agent, in the order in which they came.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use spinney_kernel::port::AgentFolder;

/// So many locks are kept before those without a call are dropped.
const LOCKS_KEPT: usize = 64;

pub(crate) type AgentLock = tokio::sync::Mutex<()>;

/// A lock for each agent that is at work.
#[derive(Debug, Default)]
pub(crate) struct AgentLocks(Mutex<BTreeMap<PathBuf, Weak<AgentLock>>>);

impl AgentLocks {
    pub(crate) fn get(&self, folder: &AgentFolder) -> Arc<AgentLock> {
        let mut agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let path = folder.path();
        if let Some(lock) = agents.get(&path).and_then(Weak::upgrade) {
            return lock;
        }
        if agents.len() >= LOCKS_KEPT {
            agents.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = Arc::default();
        agents.insert(path, Arc::downgrade(&lock));
        lock
    }
}
