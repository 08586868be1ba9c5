//! Share the parent's first message and context messages with a child again, each once.

use serde::{Deserialize, Serialize};

use super::{Outside, Verb, person};
use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId};
use crate::rules::turn::Before;
use crate::rules::{Draft, turn};
use crate::window::SharedContent;

/// Idempotent: a second refresh adds nothing new.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    pub agent: AgentId,
    /// Whether the messages shared before are removed, so only current ones remain.
    #[serde(default)]
    pub replace: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshReply {
    /// Messages delivered to it; 0 if nothing was new.
    pub messages: u32,
}

impl Verb for Refresh {
    type Reply = RefreshReply;

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Refresh {
    pub(in crate::rules) fn decide(
        &self,
        draft: &mut Draft<'_>,
        by: &Actor,
    ) -> Result<RefreshReply, Refusal> {
        person(by, "refresh an agent")?;
        let ix = draft.living(&self.agent)?;
        let above = draft.agent(ix).family.parent;
        let parent = above.ok_or_else(|| Refusal::NobodyAbove { agent: self.agent.clone() })?;
        let from = draft.agent_id(parent).clone();
        let before = if self.replace { Before::Goes } else { Before::Stays };
        let messages = turn::share(draft, &from, &self.agent, SharedContent::Briefing, before);
        Ok(RefreshReply { messages })
    }
}
