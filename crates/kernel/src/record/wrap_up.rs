//! Why a model call is its agent's last one, as the journal records it.

use crate::budget::Shortfall;
use crate::primitives::AgentId;
use crate::record::Cut;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrapUpCall {
    pub reason: WrapUpReason,
    /// What this call leaves out of the agent's window. Later calls include it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

/// Why an agent has to finish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrapUpReason {
    /// It has no turns left.
    MaxSteps,
    /// An ordinary call no longer fits the budget.
    Ceiling { account: AgentId, short: Shortfall },
    /// Its time is nearly over.
    Deadline,
}
