//! What is fixed about an agent at its birth, as the journal records it.

use serde::{Deserialize, Serialize};

use crate::budget::Terms;
use crate::definition::{Caps, OnLow, OutputSchema, WrapUp};
use crate::record::{Alarm, is_zero_ms};
use crate::words::{AgentId, CallId, ModelName, RoleName, ThreadId, Time};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawned {
    pub agent: AgentId,
    /// Who spawned it; none for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    pub role: RoleName,
    /// What it is to do.
    pub goal: String,
    /// The model it calls.
    pub model: ModelName,
    /// The conversation it belongs to.
    pub thread: ThreadId,
    /// What it may do.
    pub caps: Caps,
    /// The terms of its account.
    pub terms: Terms,
    /// What happens when a model call cannot fit.
    #[serde(default)]
    pub on_low: OnLow,
    /// Whether it gets a last call before it ends for want of room.
    #[serde(default, skip_serializing_if = "WrapUp::is_on")]
    pub wrap_up: WrapUp,
    /// When its time is up.
    #[serde(flatten)]
    pub due: Due,
    /// How its result reaches its parent.
    pub attachment: Attachment,
    /// What its answer must look like, if its spawner said so; otherwise its role does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<OutputSchema>>,
}

/// When an agent's time is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    /// Rules 2: its own deadline or an ancestor's, whichever comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// The alarm of its timeout, which runs from its birth. Under rules 2 only if it is earlier than an ancestor's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarm: Option<Alarm>,
    /// How long before its time is up that alarm comes, so that it can wrap up.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub early_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether its timeout never stands still.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wall: bool,
    /// How long it may work, counted while a model or a tool of its own runs. Starts with the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_ms: Option<u64>,
}

/// How a child's result reaches its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attachment {
    /// It is the root: whoever waits for the tree gets it.
    Root,
    /// As the end of a call, which waits for it.
    Call {
        call: CallId,
        /// Which of the tools that its parent's last answer asked for, counted from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<u32>,
    },
    Detached,
    /// Not at all: its parent was rolled back to before it was there. Nobody is born so.
    Disowned,
}
