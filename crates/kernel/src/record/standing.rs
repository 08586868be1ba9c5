//! How an agent stood at a checkpoint: what a rollback brings back into the world. Counts and places, no text; the
//! texts are read from the journal by whoever keeps contexts.

use crate::record::Holding;
use crate::words::{CallId, Seq};
use serde::{Deserialize, Serialize};

/// How an agent stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// How many agents the tree had had: whoever was born later is not known.
    pub born: u32,
    /// The most tokens that its context could have.
    pub tokens: u64,
    /// The event with the last thing its model had said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Seq>,
    /// The most tokens that this could have.
    #[serde(default)]
    pub said_tokens: u64,
    /// Messages that it had not read: the events that brought them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inbox: Vec<Seq>,
    /// Calls that were to answer tools that its last answer asked for, and which of them, counted from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<(CallId, u32)>,
    /// What its window held.
    pub window: Holding,
}
