//! What a rollback changes beside the context itself.

use serde::{Deserialize, Serialize};

use crate::primitives::{AgentId, CallId, CheckpointName, Seq};
use crate::record::AgentSnapshot;

/// A context that was reset to a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restored {
    pub agent: AgentId,
    pub from: AgentId,
    /// The checkpoint's event.
    pub at: Seq,
    /// The checkpoint of the state just before.
    pub prior: CheckpointName,
    /// The state of the checkpoint's agent.
    pub standing: AgentSnapshot,
    /// Indices, from 0, of the tool calls in the last answer that had no result at the checkpoint and will never get
    /// one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<u32>,
    /// Calls that stay open, for children that existed at the checkpoint. Results of all other open calls are
    /// discarded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<CallId>,
    /// Children that did not exist at the checkpoint. They are stopped, and their results are discarded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancelled: Vec<AgentId>,
}
