//! What is fixed about an agent when it is spawned, as the journal records it.

use serde::{Deserialize, Serialize};

use crate::budget::Terms;
use crate::definition::{Caps, OnLow, OutputSchema, Repeats, WrapUp};
use crate::primitives::{AgentId, CallId, ModelName, RoleName, ThreadId, Time};
use crate::record::{Alarm, is_zero_ms};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawned {
    pub agent: AgentId,
    /// `None` for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    pub role: RoleName,
    pub goal: String,
    pub model: ModelName,
    pub thread: ThreadId,
    pub caps: Caps,
    pub terms: Terms,
    /// What happens when a model call does not fit the budget.
    #[serde(default)]
    pub on_low: OnLow,
    /// Whether it gets a last call before it runs out of budget.
    #[serde(default, skip_serializing_if = "WrapUp::is_on")]
    pub wrap_up: WrapUp,
    /// How often it may repeat a tool call that brings nothing new. Older rules than 5 do not count.
    #[serde(default, skip_serializing_if = "Repeats::is_default")]
    pub repeats: Repeats,
    #[serde(flatten)]
    pub due: Due,
    pub attachment: Attachment,
    /// Whether it talks to a person: it waits for one after each answer, until it hands back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub talks: bool,
    /// The schema of its answer, if the spawner gave one; otherwise the role's applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<OutputSchema>>,
}

/// When an agent's time runs out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    /// Rules 2: its own deadline or an ancestor's, whichever is earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// The alarm of its timeout, which starts when it is spawned. Under rules 2 only if it is earlier than an
    /// ancestor's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarm: Option<Alarm>,
    /// How long before its time runs out the alarm fires, so it can wrap up.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub early_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether its timeout never pauses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wall: bool,
    /// How long it may work, counted while one of its own models or tools runs, from the first one on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attachment {
    /// It is the root: the result is the tree's.
    Root,
    /// As the end of a call that waits for it.
    Call {
        call: CallId,
        /// The index of the tool call in its parent's last answer, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<u32>,
    },
    Detached,
    /// The graph that its parent stands for, or belongs to: it does a step, or stands for a group.
    Step {
        frame: u32,
    },
    /// Not at all: its parent was rolled back to a point before it existed. No agent is spawned like this.
    Disowned,
}
