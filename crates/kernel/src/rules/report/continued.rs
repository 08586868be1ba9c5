//! A suspended tree is run again: calls that waited for that are reconsidered, in order. Comes after the reports of
//! lost effects and due timers, so nothing starts whose time is over.

use serde::{Deserialize, Serialize};

use crate::record::Event;
use crate::rules::{Draft, Receipt};

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
