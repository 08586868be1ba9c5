//! Shared threads: agents that receive another agent's context messages as they arrive. The smallest window of all
//! readers bounds how much of a thread any packet holds, so no agent works from messages that another cannot
//! see.

use std::collections::BTreeMap;

use crate::world::AgentIx;

/// Most trees have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// By the agent whose context messages are read.
    threads: BTreeMap<AgentIx, Thread>,
    /// By reader: the agent whose thread it reads.
    read: BTreeMap<AgentIx, AgentIx>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// In the order in which they joined.
    pub readers: Vec<AgentIx>,
    /// The most tokens of it in any packet; unlimited if absent.
    pub bound: Option<u64>,
}

impl Threads {
    /// The thread of an agent, if others read it.
    #[must_use]
    pub fn get(&self, head: AgentIx) -> Option<&Thread> {
        self.threads.get(&head)
    }

    #[must_use]
    pub fn read_by(&self, reader: AgentIx) -> Option<AgentIx> {
        self.read.get(&reader).copied()
    }

    /// The bound for an agent, as the owner or a reader of the thread.
    #[must_use]
    pub fn bound(&self, agent: AgentIx) -> Option<u64> {
        self.get(self.read_by(agent).unwrap_or(agent))?.bound
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
