//! Effects: what the outside is to do once the events behind it are durable. Each one follows from one event, and
//! each call that was started ends in exactly one report.

use crate::words::{AgentId, CallId, ModelName, Time, TimerId, ToolName};
use serde::{Deserialize, Serialize};

/// Something for the runtime to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Effect {
    /// Make one attempt at a model call.
    CallModel {
        call: CallId,
        /// Which attempt; the first is 1.
        attempt: u32,
        agent: AgentId,
        model: ModelName,
        /// The most output tokens to ask for.
        output_cap: u64,
        /// The same for every start of the same attempt.
        key: String,
    },
    /// Make one attempt at a tool call.
    CallTool {
        call: CallId,
        /// Which attempt; the first is 1.
        attempt: u32,
        agent: AgentId,
        tool: ToolName,
        /// Which of the tools that its agent's last answer asked for; none for a call from outside.
        ask: Option<u32>,
        /// The arguments of a call from outside.
        args: String,
        /// The same for every start of the same call.
        key: String,
    },
    /// Stop every running call of an agent; each still ends in its own report.
    StopCalls { agent: AgentId },
    /// Report back when the time comes.
    SetTimer { timer: TimerId, at: Time },
}
