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
    #[serde(default, skip_serializing_if = "RateKind::is_pause")]
    pub cause: RateKind,
}

/// What limits a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateKind {
    /// A pause that the provider asks for. A longer one than a call may wait for is shortened.
    #[default]
    Pause,
    /// A usage window of the user's account that is used up: hours or days.
    Window,
}

impl RateKind {
    const fn is_pause(&self) -> bool {
        matches!(self, Self::Pause)
    }

    const fn longest_ms(self) -> u64 {
        match self {
            Self::Pause => limit::RETRY_AFTER_MAX_MS,
            Self::Window => limit::USAGE_WINDOW_MAX_MS,
        }
    }
}

impl Rate {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        let until = self.until.min(draft.now().after_ms(self.cause.longest_ms()));
        if draft.rate_limit(&self.model) == Some(until)
            || !draft.definition().models.contains_key(&self.model)
        {
            return Receipt::Stale;
        }
        draft.record(Event::RateLimited { model: self.model.clone(), until });
        Receipt::Applied
    }
}
