//! How often an agent may repeat a tool call that brings nothing new.

use serde::{Deserialize, Deserializer, Serialize};

use crate::definition::{Count, Refusal};
use crate::primitives::limit;

/// After how many identical tool calls in a row an agent is warned, and after how many it ends. 0 is never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the keys of `repeats`, such as `{ notice: 3, end: 6 }`")]
pub struct Repeats {
    #[serde(deserialize_with = "count")]
    pub notice: u32,
    #[serde(deserialize_with = "count")]
    pub end: u32,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { notice: limit::REPEATS_NOTICE, end: limit::REPEATS_END }
    }
}

impl Repeats {
    pub const OFF: Self = Self { notice: 0, end: 0 };

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The smaller number of each that is not off. A notice that would come too late is off.
    pub(crate) fn stricter(self, other: Self) -> Self {
        let smaller = |one: u32, other: u32| match (one, other) {
            (0, count) | (count, 0) => count,
            (one, other) => one.min(other),
        };
        let (notice, end) = (smaller(self.notice, other.notice), smaller(self.end, other.end));
        Self { notice: if end > 0 && end <= notice { 0 } else { notice }, end }
    }

    /// # Errors
    /// If an agent could not act on the notice before it ends.
    pub const fn check(&self) -> Result<(), Refusal> {
        let Self { notice, end } = *self;
        if end > 0 && end <= notice { Err(Refusal::BadRepeats { notice, end }) } else { Ok(()) }
    }
}

/// A whole number; more than a journal can hold is never reached.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let count = Count::deserialize(deserializer)?.count();
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}
