//! When something counts as written.

use serde::{Deserialize, Serialize};

/// What "durable" means for a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Whatever the operating system does.
    Off,
    /// It survives the death of the process.
    #[default]
    Normal,
    /// It survives the loss of power.
    Full,
}
