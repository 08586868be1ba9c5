//! The process that runs the tree is stopping, or none runs it: running effects may finish, and nothing new starts.

use serde::{Deserialize, Serialize};

use crate::record::Event;
use crate::rules::{Draft, Receipt, call};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspended {
    /// An older version paused the root for this; that pause ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_pause: bool,
}

impl Suspended {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        if draft.is_suspended() {
            return Receipt::Stale;
        }
        call::suspend(draft);
        let root = draft.agents().root().filter(|root| self.was_pause && draft.agent(*root).paused);
        if let Some(root) = root {
            draft.record(Event::AgentUnpaused { agent: draft.agent_id(root).clone() });
        }
        Receipt::Applied
    }
}
