//! Make a checkpoint: an agent's context, as far as it has come, gets a name in the home.

use serde::{Deserialize, Serialize};

use super::acting;
use crate::checkpoint::CheckpointKind;
use crate::decide::{Draft, Reply};
use crate::event::Event;
use crate::id::{AgentId, CheckpointName, Seq};
use crate::input::By;
use crate::limit;
use crate::refusal::Refusal;

/// Make a checkpoint of an agent. That a name is free in the whole home is for whoever passes the request on to know:
/// a tree knows no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Of whom.
    pub agent: AgentId,
    /// What it is to be called; one is drawn if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<CheckpointName>,
    /// What makes it.
    pub kind: CheckpointKind,
}

impl Checkpoint {
    /// One that a person makes.
    #[must_use]
    pub const fn manual(agent: AgentId, name: Option<CheckpointName>) -> Self {
        Self { agent, name, kind: CheckpointKind::Manual }
    }

    pub(super) fn decide(&self, draft: &mut Draft<'_>, by: &By) -> Result<Reply, Refusal> {
        let ix = acting(draft, by, &self.agent)?;
        let at = Seq(draft.seq().0 + 1);
        let drawn = || CheckpointName::drawn(draft.tree(), at, draft.draw());
        let name = self.name.clone().unwrap_or_else(drawn);
        let number = match self.kind {
            CheckpointKind::Automatic => draft.agent(ix).progress.turns / limit::CHECKPOINT_EVERY_TURNS,
            CheckpointKind::Manual | CheckpointKind::Branch | CheckpointKind::Rollback => 0,
        };
        let agent = self.agent.clone();
        draft.record(Event::CheckpointMade { agent, name: name.clone(), kind: self.kind, number });
        Ok(Reply::Checkpoint { name })
    }
}
