//! Whether calls of a model are tried, or given up at once because it failed too often.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    #[default]
    Closed,
    /// It failed too often; calls use fallbacks or are refused.
    Open,
}
