//! Inputs: everything that can reach a tree, with the time and the randomness it may use. A stored input decides
//! the same events again.

pub(super) use crate::words::By;
use serde::{Deserialize, Serialize};

use crate::rules::report::Report;
use crate::rules::request::Request;
use crate::words::Time;

/// One input, complete: nothing else is read while deciding it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    pub now: Time,
    /// Random bits drawn for it; ids are made from them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub draw: u64,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Somebody asks; it may be refused.
    Request { by: By, request: Box<Request> },
    /// Something outside happened; it is never refused.
    Report(Report),
}

const fn is_zero(draw: &u64) -> bool {
    *draw == 0
}
