//! A process runs the tree again, or handles a request for a tree that is not running. Nothing ran since the last
//! batch, so no active time passed. Comes before the reports of lost effects, because those stop and start clocks.

use serde::{Deserialize, Serialize};

use crate::rules::{Draft, Receipt, clock};
use crate::words::Time;

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
