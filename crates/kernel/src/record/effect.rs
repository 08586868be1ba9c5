//! Effects: what the runtime must do once their events are durable. Each follows from one event, and each started
//! call ends in exactly one report.

use crate::primitives::{AgentId, CallId, ModelName, Time, TimerId, ToolName};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Effect {
    /// Make one attempt at a model call.
    CallModel {
        call: CallId,
        /// The first is 1.
        attempt: u32,
        agent: AgentId,
        model: ModelName,
        output_cap: u64,
        /// Idempotency key: the same for every start of the same attempt.
        key: String,
    },
    /// Make one attempt at a tool call.
    CallTool {
        call: CallId,
        /// The first is 1.
        attempt: u32,
        agent: AgentId,
        tool: ToolName,
        /// The index of the tool call in its agent's last answer; `None` for a call from outside.
        ask: Option<u32>,
        /// The arguments of a call from outside.
        args: String,
        /// Idempotency key: the same for every start of the same call.
        key: String,
    },
    /// Stop every running call of an agent; each still ends in its own report.
    StopCalls { agent: AgentId },
    /// Report back at this time.
    SetTimer { timer: TimerId, at: Time },
}
