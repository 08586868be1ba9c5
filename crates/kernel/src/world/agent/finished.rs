//! What is kept of children that ended beyond their totals, as long as their parent may still want it. All of it goes with
//! the parent.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::window::{KeptChildren, Window};
use crate::world::{AgentIx, Charter};

/// A child that completed and can be given another task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// What was fixed at its birth.
    pub charter: Arc<Charter>,
    /// What it knew, by its headers.
    pub window: Window,
}

/// What is kept of children that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) children: KeptChildren<AgentIx, Finished>,
    /// By parent: children that a ceiling stopped, since that was raised last.
    lost: BTreeMap<AgentIx, Vec<AgentIx>>,
}

impl Kept {
    pub(super) fn lost(&self, parent: AgentIx) -> &[AgentIx] {
        self.lost.get(&parent).map_or(&[], Vec::as_slice)
    }

    pub(super) fn lose(&mut self, parent: AgentIx, child: AgentIx) {
        self.lost.entry(parent).or_default().push(child);
    }

    pub(super) fn forget_lost(&mut self, parent: AgentIx) {
        self.lost.remove(&parent);
    }

    /// An agent is over, and so is what it may have wanted of others.
    pub(super) fn forget(&mut self, parent: AgentIx) {
        self.children.forget(&parent);
        self.lost.remove(&parent);
    }
}
