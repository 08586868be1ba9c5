//! What happens to running calls when an agent is redirected.

use serde::{Deserialize, Serialize};

/// What happens to running calls and children when an agent is redirected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Running {
    /// They run to completion.
    #[default]
    Finishes,
    Stops,
}

impl Running {
    pub(crate) const fn stops(self) -> bool {
        matches!(self, Self::Stops)
    }
}
