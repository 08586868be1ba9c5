//! When a write counts as durable.

use serde::{Deserialize, Serialize};

/// What "durable" means for a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// No sync; the operating system decides.
    Off,
    /// Survives the death of the process.
    #[default]
    Normal,
    /// Survives the loss of power.
    Full,
}
