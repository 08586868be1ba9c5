//! What makes a model call the last one of its agent, as the journal records it.

use crate::budget::Shortfall;
use crate::record::Cut;
use crate::words::AgentId;
use serde::{Deserialize, Serialize};

/// What makes a model call the last one of its agent, as the journal records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrapUpCall {
    /// What the agent has too little of.
    pub reason: WrapUpReason,
    /// What this call does not see of the agent's window. Later calls see it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

/// Why an agent has to come to an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrapUpReason {
    /// It may take no more turns.
    MaxSteps,
    /// An ordinary call does not fit any more.
    Ceiling { account: AgentId, short: Shortfall },
    /// Its time is nearly up.
    Deadline,
}
