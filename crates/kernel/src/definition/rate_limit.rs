//! How many model calls and tokens a minute may have.

use serde::{Deserialize, Serialize};

use super::Refusal;
use crate::primitives::limit;

/// Calls and tokens per minute, of a model, a role or a tree. Absent is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_min: Option<u64>,
    /// Input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_min: Option<u64>,
}

impl RateLimit {
    /// No limit.
    pub const NONE: Self = Self { requests_per_min: None, tokens_per_min: None };

    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.requests_per_min.is_none() && self.tokens_per_min.is_none()
    }

    /// A rate of nothing would never let a call start.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        for (what, rate) in
            [("requests_per_min", self.requests_per_min), ("tokens_per_min", self.tokens_per_min)]
        {
            match rate {
                Some(rate) if rate == 0 || rate > limit::RATE_MAX => {
                    return Err(Refusal::BadRate { what: what.to_owned(), rate, rate_max: limit::RATE_MAX });
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }
}
