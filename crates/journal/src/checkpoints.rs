//! Checkpoints: named positions in the journals of a home, in one index for all agents. A checkpoint copies nothing:
//! it names an agent and a position in the journal.

use crate::{CatalogKind, Fact, Journal, JournalFault};
use serde::{Deserialize, Serialize};
use spinney_kernel::primitives::{AgentId, CheckpointKind, CheckpointName, Seq, Time, TreeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedCheckpoint {
    pub name: CheckpointName,
    pub tree: TreeId,
    pub known: CheckpointFacts,
}

/// What the index stores about a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointFacts {
    pub agent: AgentId,
    pub kind: CheckpointKind,
    /// The last event of the batch that made it.
    pub seq: Seq,
    pub made: Time,
    /// Its number among its agent's automatic checkpoints, if it is one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub number: u32,
}

impl CheckpointFacts {
    /// The form in the catalog.
    pub(crate) fn written(&self) -> String {
        match serde_json::to_string(self) {
            Ok(text) => text,
            Err(_) => unreachable!("ids and numbers are written as JSON"),
        }
    }
}

/// All checkpoints of a home, in name order; with an agent, only those of agents with that id, in any tree.
///
/// # Errors
/// If the catalog cannot be read, or has an invalid row.
pub async fn checkpoints(
    journal: &dyn Journal,
    agent: Option<&AgentId>,
) -> Result<Vec<ListedCheckpoint>, JournalFault> {
    let facts = journal.catalog(CatalogKind::Checkpoint, "").await?;
    let listed = facts.into_iter().map(listed).collect::<Result<Vec<ListedCheckpoint>, JournalFault>>()?;
    Ok(listed.into_iter().filter(|listed| agent.is_none_or(|agent| listed.known.agent == *agent)).collect())
}

/// The checkpoint with this name.
///
/// # Errors
/// If the catalog cannot be read, or has an invalid row.
pub async fn find(
    journal: &dyn Journal,
    name: &CheckpointName,
) -> Result<Option<ListedCheckpoint>, JournalFault> {
    let facts = journal.catalog(CatalogKind::Checkpoint, name.as_str()).await?;
    facts.into_iter().find(|fact| fact.key == name.as_str()).map(listed).transpose()
}

fn listed(fact: Fact) -> Result<ListedCheckpoint, JournalFault> {
    let Fact { key, tree, value } = fact;
    let wrong =
        |reason: String| JournalFault::DamagedRow { kind: CatalogKind::Checkpoint, key: key.clone(), reason };
    let known: CheckpointFacts = serde_json::from_str(&value).map_err(|error| wrong(error.to_string()))?;
    let name: CheckpointName =
        key.parse().map_err(|error: spinney_kernel::primitives::IdError| wrong(error.to_string()))?;
    Ok(ListedCheckpoint { name, tree, known })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}
