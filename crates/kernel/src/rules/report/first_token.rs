//! A model's answer began to arrive: its prompt is cached, and calls with the same prefix may start.

use serde::{Deserialize, Serialize};

use super::running;
use crate::primitives::CallId;
use crate::record::Event;
use crate::rules::{Draft, Receipt};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstToken {
    pub call: CallId,
    pub attempt: u32,
}

impl FirstToken {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        if running(draft, self.call, self.attempt).is_none() || !draft.is_cache_awaited(self.call) {
            return Receipt::Stale;
        }
        draft.record(Event::FirstToken { call: self.call });
        Receipt::Applied
    }
}
