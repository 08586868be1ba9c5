//! Calls that have not ended, as far as their results will be read.

use std::collections::BTreeMap;

use crate::record::WaitFor;
use crate::words::{AgentId, CallId};

/// The calls of a tree that have not ended. There are many in a large tree, and few of them are waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    pub(super) calls: BTreeMap<CallId, Opened>,
    waits: BTreeMap<CallId, WaitFor>,
}

/// A call that has not ended.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) agent: AgentId,
    pub(super) kind: Kind,
}

/// Who reads the result of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// It is what the agent's model says.
    Model,
    /// It is what the agent's model says when it is asked for the last time.
    LastCall,
    /// It is what the agent's model sums up.
    Summary,
    /// It answers this one of the tools that the agent's last answer asked for.
    Ask(u32),
    Outside,
}

impl Kind {
    pub(super) fn of(ask: Option<u32>) -> Self {
        ask.map_or(Self::Outside, Self::Ask)
    }
}

impl Open {
    pub(super) fn insert(&mut self, call: CallId, agent: &AgentId, kind: Kind) {
        self.calls.insert(call, Opened { agent: agent.clone(), kind });
    }

    /// What an open call waits for.
    pub(super) fn waits(&mut self, call: CallId, wait: &WaitFor) {
        self.waits.insert(call, wait.clone());
    }

    /// Takes out a call that ended, and what it waited for, if it is a wait.
    pub(super) fn remove(&mut self, call: CallId) -> Option<(Opened, Option<WaitFor>)> {
        Some((self.calls.remove(&call)?, self.waits.remove(&call)))
    }
}
