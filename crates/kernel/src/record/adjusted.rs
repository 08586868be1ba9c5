//! What a person changed for a whole tree.

use serde::{Deserialize, Serialize};

use crate::budget::Ceilings;
use crate::definition::OnLow;
use crate::primitives::{AgentId, SourceFiles};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjusted {
    /// The root.
    pub agent: AgentId,
    /// Its ceilings from now on; one that is not named stays.
    pub limit: Ceilings,
    /// The most calls that run at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_max: Option<u32>,
    /// What happens when a call does not fit, for every agent and every later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_low: Option<OnLow>,
    /// The root's timeout; the following event sets its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What the tree is resumed from, from now on: each replaces the one of its name.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub sources: SourceFiles,
}
