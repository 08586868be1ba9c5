//! Whoever runs the tree is stopping, or nobody runs it: what is out may end, and nothing new starts.

use serde::{Deserialize, Serialize};

use crate::record::Event;
use crate::rules::{Draft, Receipt, call};

/// Nothing new starts until somebody runs the tree again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspended {
    /// The root was paused for this, by a version that had no other way: that pause is over.
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
