//! What becomes of running calls when an agent is redirected.

use serde::{Deserialize, Serialize};

/// What becomes of running calls and children when an agent is redirected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Running {
    /// They go on to their end.
    #[default]
    Finishes,
    Stops,
}

impl Running {
    pub(crate) const fn stops(self) -> bool {
        matches!(self, Self::Stops)
    }
}
