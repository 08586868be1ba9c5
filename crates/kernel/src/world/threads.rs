//! Threads that are shared: agents that read the context messages of one agent as they come. The smallest window among
//! all of them bounds how much of it anybody's packet holds, so that none of them works from what another cannot see.

use std::collections::BTreeMap;

use crate::world::AgentIx;

/// The shared threads of a tree. Most trees have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Each by the agent whose context messages are read.
    threads: BTreeMap<AgentIx, Thread>,
    /// Whose thread an agent reads.
    read: BTreeMap<AgentIx, AgentIx>,
}

/// A thread that is shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Who reads it, in the order in which they joined.
    pub readers: Vec<AgentIx>,
    /// The most tokens of it in anybody's packet; everything is shown if absent.
    pub bound: Option<u64>,
}

impl Threads {
    /// The thread of an agent, if others read it.
    #[must_use]
    pub fn of(&self, head: AgentIx) -> Option<&Thread> {
        self.threads.get(&head)
    }

    /// Whose thread an agent reads.
    #[must_use]
    pub fn read_by(&self, reader: AgentIx) -> Option<AgentIx> {
        self.read.get(&reader).copied()
    }

    /// The bound that counts for an agent, whether the thread is its own or it reads it.
    #[must_use]
    pub fn bound(&self, agent: AgentIx) -> Option<u64> {
        self.of(self.read_by(agent).unwrap_or(agent))?.bound
    }

    pub(crate) fn join(&mut self, head: AgentIx, reader: AgentIx, bound: Option<u64>) {
        let thread = self.threads.entry(head).or_default();
        thread.readers.push(reader);
        thread.bound = bound;
        self.read.insert(reader, head);
    }

    pub(crate) fn leave(&mut self, head: AgentIx, reader: AgentIx, bound: Option<u64>) {
        self.read.remove(&reader);
        let Some(thread) = self.threads.get_mut(&head) else { return };
        thread.readers.retain(|other| *other != reader);
        thread.bound = bound;
        if thread.readers.is_empty() {
            self.threads.remove(&head);
        }
    }
}
