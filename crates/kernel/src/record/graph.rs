//! What a journal records about a graph that runs. Outcomes of conditions and templates are part of it, so that
//! applying an event evaluates nothing.

use serde::{Deserialize, Serialize};

use crate::primitives::{AgentId, ValueName, is_false};
use crate::record::{Exit, Failure, FailureCode};

/// The number of a node that runs, in its graph: a node in a map or a loop runs more than once.
pub type FrameIx = u32;

/// A step or a group began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStart {
    /// The agent that stands for the graph.
    pub graph: AgentId,
    pub frame: FrameIx,
    /// The index of the node in its graph.
    pub node: u32,
    /// Its id, with the number of the map item or round.
    pub name: String,
    /// The group that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<FrameIx>,
    /// The number of the item, voter or round.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub place: u32,
    /// How often it was tried before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "StartOf::is_node")]
    pub of: StartOf,
    /// The items of a map, as a JSON list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<String>,
    /// The shared values that a step waits for; its agent is spawned once all are written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<ValueName>,
}

/// What of a node began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartOf {
    #[default]
    Node,
    /// One item of a map.
    Item,
    /// What takes back the effects of a step that had succeeded.
    Undo,
}

impl StartOf {
    const fn is_node(&self) -> bool {
        matches!(self, Self::Node)
    }
}

/// How a step or a group ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum NodeEnd {
    Succeeded {
        /// The member whose value counts: the winner of a race or vote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        winner: Option<u32>,
        /// The task that takes its effects back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undo: Option<String>,
    },
    Failed {
        error: Failure,
        /// Whether it is tried again, so this failure does not count.
        #[serde(default, skip_serializing_if = "is_false")]
        retried: bool,
    },
    /// It was not started, or nothing was left to do in it.
    Skipped { why: Skip },
    /// It was stopped because the result of its group was certain without it, or because its graph ended.
    Cancelled,
}

/// Why a step did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// Its condition did not hold.
    When,
    /// An input has no value.
    Missing(String),
    /// No case of a `choose` fits.
    NoCase,
    /// A person does not want it.
    Person,
}

impl NodeEnd {
    #[must_use]
    pub const fn succeeded() -> Self {
        Self::Succeeded { winner: None, undo: None }
    }

    #[must_use]
    pub fn failed(code: FailureCode, message: impl Into<String>) -> Self {
        Self::Failed { error: Failure { code, message: message.into() }, retried: false }
    }

    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Succeeded { .. })
    }

    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { .. } => "failed",
            Self::Skipped { .. } => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    /// The failure of a step whose agent ended without success.
    #[must_use]
    pub fn from_exit(exit: &Exit) -> Self {
        match exit {
            Exit::Completed => Self::succeeded(),
            Exit::Failed { error } => Self::Failed { error: error.clone(), retried: false },
            Exit::Exhausted { .. } => Self::failed(FailureCode::Exhausted, exit.to_string()),
            Exit::Cancelled { .. } => Self::failed(FailureCode::Cancelled, exit.to_string()),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}
