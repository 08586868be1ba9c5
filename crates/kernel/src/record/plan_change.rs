//! What a person changes of a graph that runs.

use serde::{Deserialize, Serialize};

use crate::primitives::StepId;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case", deny_unknown_fields)]
pub enum PlanChange {
    /// Steps that begin from now on read it with their task.
    Instruct {
        text: String,
        /// Only these, or the members of these groups; all if there are none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steps: Vec<StepId>,
    },
    /// These do not begin.
    Skip { steps: Vec<StepId> },
    /// Nothing more begins: the graph ends with what is done.
    End,
}

impl PlanChange {
    /// The steps and groups that it names.
    #[must_use]
    pub fn steps(&self) -> &[StepId] {
        match self {
            Self::Instruct { steps, .. } | Self::Skip { steps } => steps,
            Self::End => &[],
        }
    }
}
