//! Inputs: everything that can reach a tree, with the time and the random bits it may use. Deciding a stored input
//! again gives the same events.

pub(super) use crate::primitives::Actor;
use serde::{Deserialize, Serialize};

use crate::primitives::Time;
use crate::rules::report::Report;
use crate::rules::request::Request;

/// One complete input: a decision reads nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    pub now: Time,
    /// Random bits for it; new ids are derived from them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub draw: u64,
    pub what: InputKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "there is one at a time for each tree")]
pub enum InputKind {
    /// May be refused.
    Request { by: Actor, request: Box<Request> },
    /// Something happened outside. Never refused.
    Report(Report),
}

const fn is_zero(draw: &u64) -> bool {
    *draw == 0
}
