//! Make a checkpoint: gives an agent's current context a name in the home.

use serde::{Deserialize, Serialize};

use super::{Outside, Verb, acting};
use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId, CheckpointKind, CheckpointName};
use crate::rules::{Draft, checkpoint};

/// Make a checkpoint of an agent. The runtime checks that the name is free in the home: a tree knows no other trees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    pub agent: AgentId,
    /// Generated if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<CheckpointName>,
    pub kind: CheckpointKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointReply {
    /// The requested or generated name.
    pub name: CheckpointName,
}

impl Verb for Checkpoint {
    type Reply = CheckpointReply;

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Checkpoint {
    #[must_use]
    pub const fn manual(agent: AgentId, name: Option<CheckpointName>) -> Self {
        Self { agent, name, kind: CheckpointKind::Manual }
    }

    pub(in crate::rules) fn decide(
        &self,
        draft: &mut Draft<'_>,
        by: &Actor,
    ) -> Result<CheckpointReply, Refusal> {
        acting(draft, by, &self.agent)?;
        let name = checkpoint::make(draft, self.agent.clone(), self.kind, self.name.clone(), 0);
        Ok(CheckpointReply { name })
    }
}
