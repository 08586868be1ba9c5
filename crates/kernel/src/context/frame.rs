//! A child's frame: its window size and answer schema.

use serde::{Deserialize, Serialize};

use crate::definition::OutputSchema;

/// The frame that a spawner gives a child, instead of the role's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The window size in tokens, if its parent wants it smaller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The schema of its answer, instead of the role's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<OutputSchema>>,
}
