//! Checkpoints: named places in the journals of a home, in one index for all agents. A checkpoint copies nothing: it
//! says whose context is meant and where in the journal it stood like that.

use serde::{Deserialize, Serialize};

use crate::Event;
use crate::decide::Draft;
use crate::id::{AgentId, CheckpointName, Seq, TreeId};
use crate::input::What;
use crate::limit;
use crate::port::catalog::{CatalogKind, Fact};
use crate::port::journal::{Journal, JournalFault};
use crate::request::Request;
use crate::time::Time;

/// What made a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointKind {
    /// The runtime, every so many turns.
    Automatic,
    /// A person, or the agent itself.
    Manual,
    /// A branch: where it begins.
    Branch,
    /// A rollback: where the agent stood before it.
    Rollback,
}

impl CheckpointKind {
    /// The kind as one word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Manual => "manual",
            Self::Branch => "branch",
            Self::Rollback => "rollback",
        }
    }
}

/// One checkpoint of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What it is called.
    pub name: CheckpointName,
    /// In which tree it is.
    pub tree: TreeId,
    /// What the index knows of it.
    pub known: Known,
}

/// What the index knows of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Whose context.
    pub agent: AgentId,
    /// What made it.
    pub kind: CheckpointKind,
    /// Where it is: the last event of the batch with its own.
    pub seq: Seq,
    /// When it was made.
    pub made: Time,
    /// The how-manieth of its agent it is, if it is an automatic one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub number: u32,
}

impl Known {
    /// As the catalog keeps it.
    pub(crate) fn written(&self) -> String {
        match serde_json::to_string(self) {
            Ok(text) => text,
            Err(_) => unreachable!("ids and numbers are written as JSON"),
        }
    }
}

/// Every checkpoint of a home, in the order of names; with an agent given, only those of agents with that id, whatever
/// tree they are in.
///
/// # Errors
/// If the catalog cannot be read, or a row of it is not one of ours.
pub fn checkpoints(journal: &dyn Journal, agent: Option<&AgentId>) -> Result<Vec<Listed>, JournalFault> {
    let facts = journal.catalog(CatalogKind::Checkpoint, "")?;
    let listed = facts.into_iter().map(listed).collect::<Result<Vec<Listed>, JournalFault>>()?;
    Ok(listed.into_iter().filter(|listed| agent.is_none_or(|agent| listed.known.agent == *agent)).collect())
}

/// The checkpoint with this name.
///
/// # Errors
/// If the catalog cannot be read, or its row is not one of ours.
pub fn find(journal: &dyn Journal, name: &CheckpointName) -> Result<Option<Listed>, JournalFault> {
    let facts = journal.catalog(CatalogKind::Checkpoint, name.as_str())?;
    facts.into_iter().find(|fact| fact.key == name.as_str()).map(listed).transpose()
}

fn listed(fact: Fact) -> Result<Listed, JournalFault> {
    let Fact { key, tree, value } = fact;
    let wrong =
        |reason: String| JournalFault::DamagedRow { kind: CatalogKind::Checkpoint, key: key.clone(), reason };
    let known: Known = serde_json::from_str(&value).map_err(|error| wrong(error.to_string()))?;
    let name: CheckpointName = key.parse().map_err(|error: crate::id::IdError| wrong(error.to_string()))?;
    Ok(Listed { name, tree, known })
}

/// Makes the checkpoints that follow a decision by themselves: where a branch begins, and of every agent that is about
/// to take a turn and has taken so many since the last one. Everything that its tools said is in its context by then.
/// They are the last events of their batch: a branch begins where one ends.
pub(crate) fn follow(draft: &mut Draft<'_>, what: &What) {
    if let What::Request { request, .. } = what
        && let Request::Branch(branch) = request.as_ref()
        && !draft.is_over()
    {
        make(draft, branch.agent.clone(), CheckpointKind::Branch, (None, 0));
    }
    for ix in draft.take_due() {
        let Some(agent) = draft.agents().living(ix) else { continue };
        let number = agent.progress.turns / limit::CHECKPOINT_EVERY_TURNS;
        make(draft, draft.agent_id(ix).clone(), CheckpointKind::Automatic, (None, number));
    }
}

/// Gives an agent's context a name: the one it is to have, or one that is drawn.
pub(crate) fn make(
    draft: &mut Draft<'_>,
    agent: AgentId,
    kind: CheckpointKind,
    (name, number): (Option<CheckpointName>, u32),
) -> CheckpointName {
    let at = Seq(draft.seq().0 + 1);
    let name = name.unwrap_or_else(|| CheckpointName::drawn((draft.tree(), at), draft.now(), draft.draw()));
    draft.record(Event::CheckpointMade { agent, name: name.clone(), kind, number });
    name
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}
