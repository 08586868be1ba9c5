//! The journal could not be reached for a while. Nothing could be decided, so neither active time nor a timeout passed,
//! although calls that had started kept running.

use serde::{Deserialize, Serialize};

use crate::primitives::Time;
use crate::rules::{Draft, Receipt, clock};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalAway {
    /// When it was noticed.
    pub since: Time,
}

impl JournalAway {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        clock::recount(draft, self.since);
        Receipt::Applied
    }
}
