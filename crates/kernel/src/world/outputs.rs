//! The files of living agents, by reference: what their folders are filled from when the tree is resumed.

use std::collections::BTreeMap;

use crate::primitives::{BlobRef, OutputPath, StoredFile};
use crate::world::AgentIx;

/// The newest version of every file that a living agent wrote, and what it removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentOutputs {
    /// `None` is a file that was removed: an older copy of the folder may still have it.
    agents: BTreeMap<AgentIx, BTreeMap<OutputPath, Option<BlobRef>>>,
}

/// How much an agent has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wrote {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Files that it removed and did not write again.
    pub(crate) removed: usize,
}

impl AgentOutputs {
    /// Every agent that wrote or removed something, with its files; `None` for one that was removed.
    pub fn all(&self) -> impl Iterator<Item = (AgentIx, &BTreeMap<OutputPath, Option<BlobRef>>)> {
        self.agents.iter().map(|(agent, files)| (*agent, files))
    }

    /// What an agent would have written with these.
    pub(crate) fn with(&self, agent: AgentIx, written: &[StoredFile], removed: &[OutputPath]) -> Wrote {
        let mut sizes: BTreeMap<&OutputPath, Option<u64>> = BTreeMap::new();
        let before = self.agents.get(&agent).into_iter().flatten();
        sizes.extend(before.map(|(path, blob)| (path, blob.as_ref().map(|blob| blob.bytes))));
        sizes.extend(removed.iter().map(|path| (path, None)));
        sizes.extend(written.iter().map(|file| (&file.path, Some(file.blob.bytes))));
        let bytes = sizes.values().flatten().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let files = sizes.values().flatten().count();
        Wrote { files: files as u64, bytes, removed: sizes.len() - files }
    }

    pub(super) fn change(&mut self, agent: AgentIx, written: &[StoredFile], removed: &[OutputPath]) {
        if !written.is_empty() || !removed.is_empty() {
            let files = self.agents.entry(agent).or_default();
            files.extend(removed.iter().map(|path| (path.clone(), None)));
            files.extend(written.iter().map(|file| (file.path.clone(), Some(file.blob.clone()))));
        }
    }

    /// What an agent wrote and removed.
    pub(super) fn of(&self, agent: AgentIx) -> BTreeMap<OutputPath, Option<BlobRef>> {
        self.agents.get(&agent).cloned().unwrap_or_default()
    }

    /// An agent goes on with its files.
    pub(super) fn give(&mut self, agent: AgentIx, files: BTreeMap<OutputPath, Option<BlobRef>>) {
        if !files.is_empty() {
            self.agents.insert(agent, files);
        }
    }

    pub(super) fn gone(&mut self, agent: AgentIx) {
        self.agents.remove(&agent);
    }
}
