//! Somebody runs the tree again, or asks something of it while nobody does. Nothing ran since the last batch, so no
//! active time passed either. It comes before the reports of what was lost: those stop and start clocks.

use serde::{Deserialize, Serialize};

use crate::rules::{Draft, Receipt, clock};
use crate::words::Time;

/// Somebody runs the tree again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    /// When the last batch before was decided.
    pub since: Time,
}

impl Resumed {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        clock::recount(draft, self.since);
        Receipt::Applied
    }
}
