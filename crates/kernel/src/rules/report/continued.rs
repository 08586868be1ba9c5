//! Somebody runs a tree that was suspended: calls that waited for that are looked at again, in order. It comes after
//! the reports of what was lost and of timers that are due, so that nothing starts for which the time is over.

use serde::{Deserialize, Serialize};

use crate::record::Event;
use crate::rules::{Draft, Receipt};

/// Somebody runs the tree again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Continued {}

impl Continued {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        if !draft.is_suspended() {
            return Receipt::Stale;
        }
        draft.record(Event::TreeContinued);
        Receipt::Applied
    }
}
