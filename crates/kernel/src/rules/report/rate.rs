//! A model takes no calls until a moment: calls to it wait, others continue.

use serde::{Deserialize, Serialize};

use crate::primitives::{ModelName, Time, limit};
use crate::record::Event;
use crate::rules::{Draft, Receipt};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    pub model: ModelName,
    /// A moment in the past lifts the limit.
    pub until: Time,
}

impl Rate {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        let until = self.until.min(draft.now().after_ms(limit::RETRY_AFTER_MAX_MS));
        if draft.rate_limit(&self.model) == Some(until)
            || !draft.definition().models.contains_key(&self.model)
        {
            return Receipt::Stale;
        }
        draft.record(Event::RateLimited { model: self.model.clone(), until });
        Receipt::Applied
    }
}
