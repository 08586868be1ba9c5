//! Finds agents by id: an unknown id gets suggestions.

use anyhow::Result;
use spinney::tree_file::nearest;
use spinney_journal::{Journal, pages};
use spinney_kernel::record::Event;
use spinney_kernel::words::{AgentId, Seq, TreeId};

/// The error for an unknown agent, with suggestions.
pub(crate) fn unknown<'a>(agent: &AgentId, known: impl IntoIterator<Item = &'a AgentId>) -> String {
    format!("no agent `{agent}` in this tree: {}", meant(agent, known))
}

/// Suggestions for an unknown id.
pub(crate) fn meant<'a>(agent: &AgentId, known: impl IntoIterator<Item = &'a AgentId>) -> String {
    nearest::help(agent.as_str(), known.into_iter().map(AgentId::as_str), "agents")
}

/// Every agent of a tree, living or ended, in spawn order.
pub(crate) fn known(journal: &dyn Journal, tree: TreeId) -> Result<Vec<AgentId>> {
    let mut known = Vec::new();
    for page in pages(journal, tree, Seq(0)).blocking() {
        for event in page?.into_iter().flat_map(|entry| entry.batch.events) {
            if let Event::AgentSpawned(spawned) = event {
                known.push(spawned.agent);
            }
        }
    }
    Ok(known)
}
