//! What the first batch of a tree says: every tree begins with its definition and its root.

use std::sync::Arc;

use spinney_journal::{Journal, JournalFault};
use spinney_kernel::definition::Definition;
use spinney_kernel::primitives::{AgentId, Seq, TreeId};
use spinney_kernel::record::Event;

/// How a tree began.
#[derive(Clone, Debug, Default)]
pub struct TreeBeginning {
    /// What it was started with.
    pub definition: Option<Arc<Definition>>,
    /// The root's id.
    pub root: Option<AgentId>,
}

impl TreeBeginning {
    /// Reads one batch. An empty journal has neither.
    ///
    /// # Errors
    /// If the tree does not exist, or its data cannot be read.
    pub async fn read(journal: &dyn Journal, tree: TreeId) -> Result<Self, JournalFault> {
        let mut beginning = Self::default();
        for event in journal.read(tree, Seq(0), 1).await?.into_iter().flat_map(|entry| entry.batch.events) {
            match event {
                Event::TreeStarted { definition, .. } => beginning.definition = Some(definition),
                Event::AgentSpawned(spawned) => beginning.root = beginning.root.or(Some(spawned.agent)),
                _ => {}
            }
        }
        Ok(beginning)
    }
}
