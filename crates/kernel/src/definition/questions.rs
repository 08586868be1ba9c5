//! How long the questions of a role wait for a person, and what happens then.

use serde::{Deserialize, Serialize};

use super::graph::AskTimeout;
use super::{Refusal, check_text};
use crate::primitives::limit;

/// What applies to a question that says nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuestionPolicy {
    /// A day if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub on_timeout: AskTimeout,
}

impl QuestionPolicy {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if let Some(ms) = self.timeout_ms.filter(|ms| !(1..=limit::TIMEOUT_MS_MAX).contains(ms)) {
            return Err(Refusal::BadTimeout { ms, ms_max: limit::TIMEOUT_MS_MAX });
        }
        match &self.on_timeout {
            AskTimeout::Default(answer) => check_text("default answer", answer, limit::TEXT_BYTES_MAX),
            AskTimeout::Fail | AskTimeout::Cancel => Ok(()),
        }
    }
}
