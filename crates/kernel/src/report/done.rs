//! An effect did its work: its hold is settled at the true usage.

use serde::{Deserialize, Serialize};

use super::{Used, running};
use crate::agent::end_if_drained;
use crate::body::Body;
use crate::call::{self, Outcome};
use crate::decide::{Draft, Reply};
use crate::id::CallId;

/// An effect did its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// Which call.
    pub call: CallId,
    /// Which attempt.
    pub attempt: u32,
    /// What it used.
    pub used: Used,
    /// What it returned; the rest of a large one by reference.
    #[serde(default)]
    pub body: Body,
}

impl Done {
    pub(super) fn decide(&self, draft: &mut Draft<'_>) -> Reply {
        let Some(call) = running(draft, self.call, self.attempt) else { return Reply::Stale };
        let ix = call.agent;
        let spent = call::used(draft.definition(), call, self.used);
        call::end_running(draft, self.call, Outcome::Done { body: self.body.bounded() }, spent);
        end_if_drained(draft, ix);
        Reply::Done
    }
}
