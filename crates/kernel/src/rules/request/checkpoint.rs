//! Make a checkpoint: an agent's context, as far as it has come, gets a name in the home.

use serde::{Deserialize, Serialize};

use super::{Outside, Verb, acting};
use crate::definition::Refusal;
use crate::rules::{Draft, checkpoint};
use crate::words::{AgentId, By, CheckpointKind, CheckpointName};

/// Make a checkpoint of an agent. That a name is free in the whole home is for whoever passes the request on to know:
/// a tree knows no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    pub agent: AgentId,
    /// What it is to be called; one is drawn if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<CheckpointName>,
    pub kind: CheckpointKind,
}

/// The checkpoint exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointReply {
    /// Its name: the one that was asked for, or the one that was drawn.
    pub name: CheckpointName,
}

impl Verb for Checkpoint {
    type Reply = CheckpointReply;

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Checkpoint {
    /// One that a person makes.
    #[must_use]
    pub const fn manual(agent: AgentId, name: Option<CheckpointName>) -> Self {
        Self { agent, name, kind: CheckpointKind::Manual }
    }

    pub(in crate::rules) fn decide(
        &self,
        draft: &mut Draft<'_>,
        by: &By,
    ) -> Result<CheckpointReply, Refusal> {
        acting(draft, by, &self.agent)?;
        let name = checkpoint::make(draft, self.agent.clone(), self.kind, self.name.clone(), 0);
        Ok(CheckpointReply { name })
    }
}
