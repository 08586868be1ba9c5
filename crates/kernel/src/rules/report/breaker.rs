//! A model's circuit breaker opened or closed. The breaker itself lives outside, one per process.

use serde::{Deserialize, Serialize};

use crate::primitives::ModelName;
use crate::record as event;
use crate::record::Event;
use crate::rules::{Draft, Receipt};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breaker {
    pub model: ModelName,
    pub breaker: event::BreakerState,
}

impl Breaker {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        let open = self.breaker == event::BreakerState::Open;
        if draft.is_broken(&self.model, draft.now()) == open
            || !draft.definition().models.contains_key(&self.model)
        {
            return Receipt::Stale;
        }
        draft.record(Event::BreakerChanged { model: self.model.clone(), breaker: self.breaker });
        Receipt::Applied
    }
}
