//! A step: one thing that an agent did, for people. Everything in it comes from the journal, so the same journal
//! gives the same bytes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spinney_kernel::budget::Amounts;
use spinney_kernel::primitives::{CallId, Seq, ThreadId, TreeId};

/// One thing that an agent did. All nine fields are always written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// `step_001` and so on, in the order in which the agent's steps ended.
    pub id: String,
    /// The tool as the model called it, or what the agent did without one: `agent:answer`, `agent:spawn`, …
    pub tool_name: String,
    /// The arguments; long values are cut.
    pub minimal_args: Map<String, Value>,
    /// What came back; the beginning, if that is long.
    pub observation: String,
    /// Whether it did what it was to do.
    pub success: bool,
    /// When it ended, in milliseconds since the Unix epoch.
    pub timestamp_ms: u64,
    /// Where the whole is, if `observation` is only parts of it: `offload/NAME`, `blob:HASH` or `event:SEQ`.
    pub outcome_ref: Option<String>,
    /// Why it did not succeed.
    pub error: Option<String>,
    pub metadata: Metadata,
}

/// Where a step belongs and what it took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// The tree, which is the trace.
    pub tree: TreeId,
    /// Ids from the root down to the agent itself, with slashes between.
    pub path: String,
    pub thread: ThreadId,
    /// The event that ended the step.
    pub seq: Seq,
    /// The call, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// From asking to the end, if it was a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// What its last attempt used.
    #[serde(default, skip_serializing_if = "Amounts::is_zero")]
    pub spent: Amounts,
    /// The part of it that no provider reported.
    #[serde(default, skip_serializing_if = "Amounts::is_zero")]
    pub presumed: Amounts,
    /// What the model said when it asked for this tool; at the first tool of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

impl Step {
    /// Its file's content.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match serde_json::to_vec_pretty(self) {
            Ok(mut bytes) => {
                bytes.push(b'\n');
                bytes
            }
            Err(error) => unreachable!("texts, numbers and maps with text keys can be written: {error}"),
        }
    }
}
