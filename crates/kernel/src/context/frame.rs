//! The frame of a child: how much its model is shown at once, and what it must answer.

use serde::{Deserialize, Serialize};

use crate::definition::OutputSchema;

/// The frame that a spawner gives a child, beside what its role says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The most tokens of its window, if its parent wants it smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What its answer must look like, instead of what its role says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<OutputSchema>>,
}
