//! The files of living agents, by reference: what their folders are filled from when the tree is resumed.

use std::collections::BTreeMap;

use crate::primitives::{BlobRef, OutputPath, StoredFile};
use crate::world::AgentIx;

/// The newest version of every file that a living agent wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentOutputs {
    agents: BTreeMap<AgentIx, BTreeMap<OutputPath, BlobRef>>,
}

/// How much an agent has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wrote {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl AgentOutputs {
    /// Every agent that wrote something, with its files.
    pub fn all(&self) -> impl Iterator<Item = (AgentIx, &BTreeMap<OutputPath, BlobRef>)> {
        self.agents.iter().map(|(agent, files)| (*agent, files))
    }

    /// What an agent would have written with these.
    pub(crate) fn with(&self, agent: AgentIx, written: &[StoredFile]) -> Wrote {
        let mut sizes: BTreeMap<&OutputPath, u64> = BTreeMap::new();
        let before = self.agents.get(&agent).into_iter().flatten();
        sizes.extend(before.map(|(path, blob)| (path, blob.bytes)));
        sizes.extend(written.iter().map(|file| (&file.path, file.blob.bytes)));
        let bytes = sizes.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        Wrote { files: sizes.len() as u64, bytes }
    }

    pub(super) fn write(&mut self, agent: AgentIx, written: &[StoredFile]) {
        if !written.is_empty() {
            let files = self.agents.entry(agent).or_default();
            files.extend(written.iter().map(|file| (file.path.clone(), file.blob.clone())));
        }
    }

    pub(super) fn gone(&mut self, agent: AgentIx) {
        self.agents.remove(&agent);
    }
}
