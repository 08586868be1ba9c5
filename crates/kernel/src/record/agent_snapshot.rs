//! An agent's state at a checkpoint, which a rollback restores into the world. Counts and positions only; the texts
//! are read back from the journal.

use crate::primitives::{CallId, Seq, TokenCount};
use crate::record::WindowSnapshot;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSnapshot {
    /// How many agents the tree had had. Agents with higher numbers did not exist.
    pub born: u32,
    /// Upper bound on the tokens of its context.
    pub tokens: u64,
    /// The event with its model's last text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Seq>,
    /// The tokens of that text.
    #[serde(default)]
    pub said_tokens: TokenCount,
    /// The events of its unread messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inbox: Vec<Seq>,
    /// Open calls for tools of its last answer, with the tool's index from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<(CallId, u32)>,
    pub window: WindowSnapshot,
}
